/**
 * Common passwords, and the words and sequences inside them, in lower case. `password-rules.ts`
 * also removes common additions before it compares: repetition, digits and signs.
 */
export const commonPasswords: ReadonlySet<string> = new Set(
  `
01234567 012345678 0123456789 012345678901 012345678901234 0123456789012345 012345678901234567 01234567890123456789
09876543 098765432 0987654321 098765432109876 0987654321098765 09876543210987654321 11223344 112233445566
1122334455667788 123123123 12345678 123456789 1234567890 123456789012 123456789012345 1234567890123456
123456789012345678 12345678901234567890 123456789123456 1234567891234567 123456789123456789 147258369 147258369147258
159357159357 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1q2w3e4r5t6y7u 1q2w3e4r5t6y7u8 1q2w3e4r5t6y7u8i 1q2w3e4r5t6y7u8i9o
1q2w3e4r5t6y7u8i9o0p 1qaz2wsx 1qaz2wsx3edc 1qaz2wsx3edc4rf 1qaz2wsx3edc4rfv 1qaz2wsx3edc4rfv5tgb
1qaz2wsx3edc4rfv5tgb6yhn 1qaz2wsx3edc4rfv5tgb6yhn7ujm 543210987654321 654321098765432 87654321 98765432 987654321
9876543210 987654321098765 9876543210987654 98765432109876543210 a1b2c3d4 a1s2d3f4 a1s2d3f4g5h6j7k8 abc123 abcdefgh
abcdefghij abcdefghijklmno abcdefghijklmnop abcdefghijklmnopqr abcdefghijklmnopqrst abcdefghijklmnopqrstuvwxyz
abracadabra access achilles admin administrator administratorpassword adminpassword agent007 airplane akash alessandro
alex alien allen alpha amanda amber amsterdam andrea andrew angel anger anna anthony antonio apollo apple april
arsenal asdfghjk asdfghjkl asdfghjklzxcvbn asdfghjklzxcvbnm ashley assassin asshole atlantis august austin autumn
awesome azertyuiop azertyuiopqsdfg baby babydoll babygirl backup bailey barcelona baseball bass bastard batman
batterystaple beach bear beatles beckham beer bella berry betty billy birthday bitch black blade blessing blink blood
blue boat bobby boobs brandon brian broncos brooklyn brown bruce bubba bubbles buckeyes buddy budweiser buffalo bull
bulldog bullshit buster butter cairn camaro camel cameron candy cannabis captain carol cartman casey cats catwoman
celtic champion change changeit changeme changemenow changethis charger charles charlie chelsea cherries chester
chevrolet chevy chicago chicken chief china chris cinnamon class cobra cocacola cock coke coldplay colombia colorado
company companyname computer cookie cool cooldude corleone correcthorse correcthorsebatterystaple corvette country
cowboy crazy cricket crystal cutie daddy daisy dallas dance daniel dark darkness database david dead deadpool death
december default defaultpassword delta demon designer destiny devil diablo diamond dick digital dinosaur disco dodge
doggy dolphin dontforget donttellanyone doors dragon dragonball dream drummer ducati dusty dutch dylan eagle eastside
edward edwin eight einstein ekaterina elephant eleven engineer enterprise erica erin espresso eternity everton
excalibur explorer falcon family fast february ferrari fire fireball fishing five flame florida flower flyers football
force ford forever forgot forgotpassword four france francis frank freedom french friday friend frog fuck fuckme
fuckoff fuckyou gabriel game gameover gandalf gang gangster garfield gators genesis george german ghost giants ginger
gizmo gladiator gobeyond godfather godisgood godislove godzilla gold golden goldfish golf golfer goodgirl goodluck
google goose gordon gorilla grace gray green guest guinness guitar halflife hammer happy happybirthday harley harry
harrypotter hateyou hawaii hawk heather heavymetal heineken hell hello hellokitty helloworld hercules hero hill hockey
holly home honda honey hongkong horny horse hotgirl hotstuff house houston hunter icecream iceman idontknow
ihatepasswords ihateyou ilove iloveyou iloveyoubaby iloveyouforever iloveyousomuch india infinity internet
inthenameofgod irish iron ironmaiden island istanbul italia jack jackson james jamesbond jane january jasmine jeffrey
jelly jessica jesus jesuschrist jesusislord jesuslovesme jimmy john johnny joker jordan joseph joshua july june
jupiter justice justin juventus kangaroo karolina kate kawasaki kelly kenneth keyboard kill killer king kissmyass
kitty kristin labrador lady lake lakers lance leavemealone leeds lemon letmein letmeinplease life lightning lincoln
linda lion lisa live liverpool lkjhgfdsa login london lordoftherings loremipsum loremipsumdolor love lover loveyou
lucky madison maggie magic manchester manchesterunited maradona marcel march maria marijuana marine marlboro marley
martin mary maserati master matrix matthew maverick maxim maxwell maytheforcebewithyou mazda megadeth melanie melissa
mercedes mercury merlin merrychristmas metal metallic metallica michael michaeljordan michel michigan mickey microsoft
miller million minecraft mnbvcxzlkjhgfdsapoiuytrewq molly monday money monkey montana montreal moon moonbeam moonlight
morpheus mother motorola mountain mouse music mustang mypassword mypasswordis natalie natasha nathan newpassword
newyork nicole night nightwish nikita nine nintendo nirvana nitro nokia norma nothing november october office omega
onceuponatime opensesame openthedoor orange packers pakistan pantera panther paradise party pass pass1234 passw0rd
password passwordispassword passwort patches patrick patriots peach pearl penguin penny pepper pepsi peter philip
phillies phoenix piano pimp pineapple pinkfloyd pizza platinum playboy playstation pleaseletmein poiuytrewq
poiuytrewqlkjhg pokemon pooh porn porsche portland portugal poseidon power precious predator prince private pumpkin
punkrock purple pussy pyramid q1w2e3r4 q1w2e3r4t5y6 q1w2e3r4t5y6u7i8 qazwsxedc qazwsxedcrfv qazwsxedcrfvtgb
qazwsxedcrfvtgbyhn qazwsxedcrfvtgbyhnujm qwerty qwertyui qwertyuiop qwertyuiopasdfg qwertyuiopasdfgh
qwertyuiopasdfghjkl qwertyuiopasdfghjklzxcvbnm qwertzuiop qwertzuiopasdfg radiohead raiders rainbow rammstein rasta
realmadrid rebecca redskins redsox richard river robert robin rock rockandroll rocket rocky roman rome ronald rooster
root rootroot rose ross russia rusty sabrina salasana samantha sammy samsung sandiego sandy santa sapphire sara sasha
satan saturday sausage scarface scooby scooter scorpio scotland scott secret secretpassword security september server
service seven sexy shadow shane shannon sheep sherlock shit showtime sigma silver simpson slayer slipknot smith smoke
snake snickers snow snowball snowboard soccer softball software sonic southpark space sparky spartan speed spencer
spider spiderman spongebob spring squirrel srinivas stallion stanley star starcraft starfish starwars steel stephen
steve stone storm strawberry sugar summer sunday sunny sunshine super supercalifragilisticexpialidocious superman
superstar superuser svetlana sweet swimming sword sysadmin system taylor teddy temporarypassword temppassword
terminator test testing testing123 testpassword testtest thailand thankyou thankyoujesus that theforceiswithyou
thequickbrownfox thequickbrownfoxjumps thirteen this thisisapassword thisismypassword thomas three thuglife thunder
thursday tiffany tiger tigger time tinker tinkerbell titan tobeornottobe tommy toor tottenham travel tree trinity
truck trust trustno1 trustnoone tuesday turbo turkey twelve twilight ultimate united user username userpassword
vacation valentina vampire vanessa vegas victor vincent violet viper vladimir volvo voyager walker warcraft warrior
water webmaster wednesday welcome welcomeback welcomehome welcometothejungle westside whatever whatsupdoc whiskers
white william windows winston winter with wolf wolfgang wolverine wonder word world yamaha yankee your yourpassword
youshallnotpass zachary zaq12wsx zaq1xsw2cde3vfr4 zaqxswcdevfr zeppelin zxcvbnm zxcvbnmasdfghjkl
zyxwvutsrqponmlkjihgfedcba
`
    .trim()
    .split(/\s+/),
);
