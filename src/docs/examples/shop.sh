#!/bin/sh
# The requests of a shop, beside: cairn serve --collections shop.json --registration open
# PASSWORD is that of the first administrator, from the file admin-password of the data. Each line of the output is
# the status of a request, and its answer.
set -eu
origin=${ORIGIN:-http://localhost:3000}

# send TOKEN METHOD PATH [JSON]: an empty TOKEN is somebody who has not signed in.
send() {
  curl -s -o /tmp/answer.$$ -w '%{http_code} ' "$origin$3" -X "$2" \
    -H 'Content-Type: application/json' ${1:+-H "Authorization: Bearer $1"} ${4:+-d "$4"}
  cat /tmp/answer.$$
  echo
}

# token EMAIL PASSWORD: signs in, and prints the access token. A refusal ends the script.
token() {
  answer=$(curl -sS --fail-with-body "$origin/tokens" -H 'Content-Type: application/json' \
    -d "{\"email\":\"$1\",\"password\":\"$2\"}") || { echo "$answer" >&2; exit 1; }
  echo "$answer" | sed 's/.*"access_token":"\([^"]*\)".*/\1/'
}

trap 'rm -f /tmp/answer.$$' EXIT
admin=$(token admin@localhost.localdomain "$PASSWORD")

# Anyone may sign up. An administrator makes one of them a clerk, who then signs in anew.
send '' POST /users '{"name":"Cleo","email":"cleo@example.org","password":"the password of cleo"}'
send "$admin" PATCH /users/2 '{"role":"clerk"}'
send '' POST /users '{"name":"Mia","email":"mia@example.org","password":"the password of mia"}'
send '' POST /users '{"name":"Ben","email":"ben@example.org","password":"the password of ben"}'
clerk=$(token cleo@example.org 'the password of cleo')
mia=$(token mia@example.org 'the password of mia')
ben=$(token ben@example.org 'the password of ben')

# The clerk fills the shelves. Everybody sees them, and nobody else changes them.
send "$clerk" POST /products/batch '[{"name":"Lamp","price":24.5},{"name":"Desk","price":180}]'
send '' GET '/products?sort=-price&fields=name,price'
send "$mia" PATCH /products/1 '{"price":1}'

# Mia orders two lamps.
send "$mia" POST /customers '{"name":"Mia","email":"mia@example.org"}'
send "$mia" POST /orders '{"customerId":1}'
send "$mia" POST /lines '{"orderId":1,"productId":1,"quantity":2}'
send "$mia" GET '/lines?orderId=1&embed=productId'

# She may not say that it is paid, and Ben does not even see it.
send "$mia" PATCH /orders/1 '{"status":"paid"}'
send "$ben" GET /orders/1
send "$ben" GET /orders

# The clerk sees all orders, with their lines, and ships this one.
send "$clerk" GET '/orders?status=open&embed=customerId,lines&fields=id,status'
send "$clerk" PATCH /orders/1 '{"status":"shipped"}'
