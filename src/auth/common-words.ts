/**
 * What common passwords are made of: words, names, teams, brands, phrases, keys in a row; of at least four characters,
 * in lower case, without plurals. `password-rules.ts` finds them in any spelling, order and repetition, so a few
 * thousand words stand for the millions of entries that lists of leaked passwords have.
 */
export const commonWords: ReadonlySet<string> = new Set(
  `
a1b2c3 a1b2c3d4 aa123456 abc123 abcd abcde abdullah access account acdc achilles acmilan actor actress adams aditya
admin administrador administrator admiral adobe adventure africa agent007 agnieszka ahmed airplane ajax akash akira
alabama aladdin alaska alejandra alejandro alessandra alessandro alex alexander alexandra alexey alexis alien alive
allah allen alone alpha always amanda amazing amazon amber amen america american americano amir amit amsterdam anakin
anand anarchy anastasia anderson andrea andrew andrey android angel angela angelic angelina anger angry anil anita anna
annie anniversary anthony antoine antonio anybody anything apartment apollo apple april aragorn argentina ariel arizona
arjun army arsenal artem arthur artist arun asdasd asdf asdfgh asdfghjkl ashley ashok assassin asshole athena athens
atlanta atlantis atlas audi august austin australia author autumn avengers avenue awesome ayse azerty babe baby babyboy
babydoll babygirl backup bacon badboy badger badgirl bailey baker baller ballin baltimore bambi banana bandit bandung
bangalore bangkok bangladesh banjo bank banking barbara barbie barcelona barney bart bartek baseball basketball bass
bastard batman batterystaple battlefield baxter bayern beach beagle bear beatles beautiful beauty beaver becker beckham
beer beetle beijing believe believer bella bemyvalentine benfica bengals benjamin bentley berlin berry bestever
bestfriend beta beth bethany betty beyonce bible bicycle bieber bienvenue bigboy bigdaddy bigdog biggie bigmac bigred
bigtits biking billion billy binary bingo biology birmingham birthday biscuit bison bitch black blackberry blackbird
blackcat blackie blackjack blade blaze bleach blessed blessing blink blood bloody blossom blue blueberry bluesky
bluetooth boat bobby bobmarley boca bomber bond007 bones bonnie boobs boomer boots boris boston bowie boxer boxing
boyfriend brandon brandy brasil braves bravo brazil brenda brian brisbane bristol britain british britney broken
broncos brooke brooklyn brother brown brownie bruce bruins brussels brutus bryan bubba bubbles buckeyes buddha buddy
budweiser buffalo buffy bugatti bugsbunny builder bull bulldog bullet bullshit bumblebee bunny burger burrito bush
business buster butter butterfly byebye caesar cairn cairo caleb california callmemaybe callofduty calvin camaro camel
camelot cameron camille campbell canada canadian candy candycane cannabis canucks cappuccino captain captainamerica
cardinals carlos carmen carol carolina caroline carpediem carrot cars carter cartman casey cash casino casper catherine
cats catwoman celtic cereal challenger champion chance change changeit changeme chaos charger charizard charles charlie
cheese cheeseburger cheesecake cheetah cheguevara chelsea chemistry chennai cherries cherry cheryl chester chevrolet
chevy chewbacca chiara chicago chicken chico chief chihuahua chile china chinese chloe chocolate chris christ christian
christina christine christmas christopher church churchill cigarette cincinnati cinderella cindy cinnamon cisco city
claire clark class classic classroom claudia clayton cleo cleopatra cleveland clinton coach cobra cocacola cock
cocktail coco cocoa coconut cody coffee cognac coke coldplay colin college collins colombia colonel colorado colts
columbia comeon commander company computer concert connor contrasena cook cookie cool coolboy cooldude coolgirl coolguy
coolman cooper copper corey corinthians corleone corona corporal corporate correcthorse correcthorsebatterystaple
corvette cosmo cougar counter counterstrike country county courtney cowboy cowgirl crap crazy creed crew cricket
crimson crips cristina cruz crying crystal cuba cubs cupcake curtis cute cutie cutiepie cycling cynthia daddy dagger
daisy dakota dallas damian dammit damn dance dancer dancing danger dangerous daniel daniela danielle dark darkness
darling darren darthvader data database dave david davidson davis dawn dead deadly deadpool dean death debbie debian
deborah december deepak deer default delhi dell delta demi demo demon denise denmark dennis dentist denver depeche
deputy derek desert designer desktop destiny detroit deutschland developer devil dexter diablo diamond diana diane diaz
dick diesel digimon digital dinesh dinosaur director disco discovery dixie dmitry docker doctor dodge dodgers doggie
doggy dogs dollar dolphin dominic dominik donald donkey donna donotforget dontworrybehappy doors doraemon doris dorothy
dortmund dory douglas dragon dragonball dream dreamer dreaming driver drummer drums dublin ducati duck dude duke
dumbledore dumbo duncan dustin dusty dutch dylan eagle earth easter eastside echo eddie edgar edinburgh edison eduardo
edward edwin eeyore egypt eight eighteen eighty eileen einstein ekaterina elaine eleanor elephant eleven elite
elizabeth ellen elmo elvis emerald emily eminem emma emre energy engineer engineering england english enrique
enterpassword enterprise enteryourpassword eric erica erik erin ernest espana espresso esteban eternal eternity ethan
eugene europe evan evanescence evelyn evening everton everyone everything evil example excalibur explorer extreme
facebook faith falcon family familyguy farmer farming fast faster father fatima fatma february federica felix fernanda
fernando ferrari feyenoord fido fifty fiftycent finalfantasy finance finland fiona fire fireball firebird firefighter
firefly fireman first fischer fisherman fishing fitness five flame flamengo flight florence flores florida flower floyd
fluffy flyers flying followme football force ford forest forever forgetme forgot forgotten fortnite fortune forty
fortyniners four foxes foxtrot france francesca francesco francis francisco francois frank frankie franklin fred
freddie freddy freedom french friday friend friendship frodo frog froggy fuck fucker fucking fuckit fuckme fuckoff
fuckyou funny funtime furious future gabriel gabriela gaga galaxy gambler gambling game gameboy gameover gamer gaming
gamma gandalf gandhi ganesh gang gangsta gangster ganja garcia garden garfield garlic gary gators gaurav gavin gecko
geheim general genesis genius geoffrey george georgia gerald gerard german germany getmoney ghetto ghost giants gilbert
gina ginger giovanni giraffe girlfriend github gitlab giulia giuseppe giveup gizmo gladiator glasgow gloria glory gmail
goalkeeper goat goaway godbless godblessyou goddess godfather godisgood godislove godzilla gohan gohome goku gold
golden goldeneye goldfish golf golfer gollum gomez gonzales gonzalez goodboy goodbye goodgirl goodluck goodmorning
goodnight goodtimes goofy google goose gordon gorgeous gorilla grace gracie graham grant grape grass gray greece green
greenday greg gregory grey guadalupe guest guevara guillermo guinness guitar guitarist gunner gustavo gutierrez gypsy
hacker hacking hades hakunamatata halflife halloween halo hamburger hammer hamster handsome hannah hans hansolo
happiness happy happybirthday happyday happynewyear hardware harley harleydavidson harold harris harry harrypotter
haruka harvey haslo hassan hate hateyou hawaii hawaiian hawk heart heat heather heaven hector heidi heike heineken
helen hell hello hellohello hellokitty helloworld hendrix henry herbert hercules hermione hernandez hero heroes hershey
heslo highschool hill hiphop hiroshi hisher history hithere hitler hobbit hockey hoffmann hogwarts holiday holland
holly hollywood home homeboy homer homesweethome homie honda honey honeybee hongkong hope horny horse hospital hotboy
hotel hotgirl hotmail hotstuff hottie house houston howard hugs hulk hundred hunter hunting hurricane husband huskies
husky hussein hustle hustler iamgod iamthebest ibrahim icecream iceman ichigo ignacio igor ihate ilove ilovegod
ilovejesus ilovemyfamily ilovemylife ilovemyself iloveu iloveyou iloveyoubaby iloveyouforever iloveyoumom
iloveyousomuch imagine imthebest india indian indiana indigo indonesia inferno infinity insane insect instagram intel
intermilan internet inthenameofgod iphone ireland irish iron ironmaiden ironman isaac isabel isabella isabelle island
israel istanbul itachi italia italian italy ivan iwillsurvive jack jackdaniels jackie jackpot jackson jacob jacqueline
jacques jaguar jaime jakarta jake jakub jamaica james jamesbond jamie jane janet janice january japan japanese jared
jasmine jason jasper javier jayz jazz jean jeanette jedi jeff jefferson jeffrey jelly jellybean jenna jennifer jenny
jeremy jerome jerry jerusalem jesse jessica jessie jesus jesuschrist jesusislord jesuslovesme jets jill jimena jimmy
joan joanna joanne joaquin joel joey johanna john johnny johnson joker jonas jonathan jones jordan jorge jose joseph
josh joshua journey joyce juan juanita judith judo judy juergen juice julia julian juliana julie julien juliet juliett
july june jungle jupiter justice justin juventus kamil kangaroo karate karen karina karl karma karolina katarzyna kate
katherine kathleen kathryn kathy katie katrina kawasaki kayla keith kelly kelsey kenji kennedy kenneth kenny kentucky
kenya kerry kevin keyboard khadija khalid kill killer kilo kimberly king kingdom kingkong kiran kirby kirsten kiss
kisses kissme kissmyass kitten kitty klaus knicks knight koala kobe korea korean korn krishna kristen kristin kristina
krzysztof kumar kurt kyle kyoto labrador lacey lady ladybug ladygaga lake lakers lakshmi lamb lamborghini lance
lancelot laptop larry lasvegas latte laugh laughing laura lauren laurence lawrence lawyer leaf leah leanne leavemealone
lebron ledzeppelin leeds leet legend legolas lemon lemonade lenin lennon lenovo leon leonard leonardo leopard leslie
letmein letmeinnow letmeinplease letsgo lewis lexus liam liberty library life lifetime lighter lightning lillian lily
lima lincoln linda lindsay lindsey link linkedin linkin linkinpark linux lion lisa lisbon live liverpool living lizard
lkjhgfdsa lmao locked logan login logon lois loki london lonely longhorns lopez lordoftherings loremipsum lorena
lorenzo lori lorraine losangeles losenord lottery lotus louie louis louise love loved lovely loveme lovepassword lover
loveyou loving lucas lucero lucia luciana lucifer lucky luckyone lucy luffy luigi luis lukasz luke luna lynn mackenzie
madeline madison madman madonna madrid mafia magdalena maggie magic magical magician mahesh major makemoney malaysia
malgorzata mama manager manchester mandela mango manhattan manila manish manoj manuel manunited maple mapleleafs
maradona marc marcel marcela march marcia marcin marco marcus marek margaret maria mariah marian mariana maricel marie
marijuana marilyn marina marine mariners mario marion marisol mark marlboro marlene marley marlon mars marsha marshall
marshmallow martha martin martina martinez martini marvel marvin mary maserati mason master mastermind mateo mateusz
math mathematics matrix matt matteo matthew maureen maurice mauricio maverick maxim maxime maxine maxwell
maytheforcebewithyou mazda mccartney medical medicine megadeth megan mehmet melanie melbourne melinda melissa melon
mercedes mercury meredith merlin merrychristmas messi metal metalhead metallic metallica metroid mets mexican mexico
meyer miami michael michaeljackson michaeljordan michal michel michelle michigan mickey mickeymouse microsoft midnight
miguel mike mikey milan milano mildred miles miley military milk miller million millionaire milo milton mine minecraft
minhanh minnie miranda misty mitchell mittens mnbvcxz mocha mode modem modern mohamed mohammad mohammed molly mommy
monday money moneymoney monica monika monique monitor monkey montana montreal moon moonbeam moonlight moore morales
mordor morgan moriarty morning morpheus morris moscow motdepasse mother motorbike motorcycle motorola mountain mouse
mueller mufasa muffin muhammad mukesh mulan mumbai mummy murder murphy music musical musician mustafa mustang mypass
mypassword myra mysecret myself mysql mystery mystic nachos nadia nadine naked nala naomi napoleon narnia naruto nasa
natalia natalie natasha nathalie nathan nathaniel nature naveen navy nelson nemo neptune netflix network nevada
neverforget nevergiveup newbie newcastle newpassword newton newyear newyork newyorkcity neymar nguyen nicholas nick
nicolas nicole nigeria night nightwish nikhil nikita nikki nina nine ninety ninja nintendo nirvana nissan nitro noah
nobody nokia nomad nono noob noodle nopassword nora norma norman northside norway nothing november nude nuggets number
numberone nurse nvidia oatmeal obama ocean october odyssey office ohio okay okidoki oksana oldpassword oldschool oleg
olga oliver olivia olympus omar omega onedirection onepiece onetwothree onion opensesame openthedoor openup oracle
orange orchid oreo orioles orlando ortiz osaka oscar otis otter ourpassword ourselves outlaw outlook owen pablo packers
pacman painter pakistan palmeiras pamela pancake panda pantera panther paola papa paradise paris parker parola parrot
party partytime pass passe passw0rd passwd password passwort past pasta patches patricia patrick patriots patty paul
paula pauline pavel pawel peace peaceful peach peaches peanut peanutbutter pearl pebbles pedro pegasus peggy pele
penguin penny pepper pepsi perez peru peter peterpan peterson petra pharaoh phil philadelphia philip philippe
philippines phillies phillip phoenix phuong phyllis physics piano pickles pierre pigeon piggy piglet pikachu pilar
pilot pimp pimpin pineapple pink pinkfloyd pinky pioneer piotr pirate pistol pitbull pittsburgh pizza planet platinum
playboy player playgirl playstation please pluto pocahontas poiuytrewq pokemon poker poland police policeman polska
pony poodle pooh popcorn popeye porn porsche portland porto portugal poseidon postgres potato potter power powerful
pradeep praisethelord prakash prasad precious predator present president presley preston pretty prince princess private
priya priyanka producer professor program programmer programming psycho pudding pumbaa pumpkin punk punkrock puppies
puppy purple pussy pyramid python qazwsx quebec queen quickbrownfox qweasd qweasdzxc qweqwe qwer qwert qwerty qwertz
rabbit racecar racer rachel racing radiohead rafael rahul raiders rain rainbow rainy rajan rajesh ralph ramesh ramirez
rammstein ramon randy ranger rapper rapunzel raquel rascal raspberry rasta raul raven ravi raymond reader reagan
realmadrid rebecca rebel redbull redskins redsox redwings reed reggae regina reginald remember renee retriever retro
reyes rhonda ricardo rich richard rick ricky rifle rihanna riley rita river robert roberta roberto robin robinhood
robinson roblox rocco rocio rock rocket rocknroll rockstar rocky rodeo rodney rodolfo rodrigo rodriguez rofl roger
rohit roland rollingstones roman rome romeo ronald ronaldo ronnie rooney roosevelt rooster root rosa rose rosemary
rosie ross rottweiler router roxanne roxy ruben ruby rudy rufus rugby runner running russia russian rusty ruth ryan
sabine sabrina sachin sadie saibaba sailing sailor sailormoon saints sakura salasana sally salvador samantha sammy
sample samson samsung samuel samurai sanchez sandeep sandiego sandra sandwich sandy sanfrancisco sanjay santa
santaclaus santiago santos santosh sapphire sara sarah sasha sassy sasuke satan satish saturday saturn sausage savannah
scarface scarlet schmidt schneider school schulz science scooby scoobydoo scooter score scorpio scorpion scotland scott
scotty scout seahawks sean season seattle sebastian second secret secreto secretpassword secure securepassword security
selena senha seoul september serena sergeant sergey sergio server service sesame seth seven seventeen seventy sexsex
sexy shadow shakira shane shanghai shannon shark sharon shaun shawn sheba sheep sheila shelby shelly sheriff sherlock
sherry shield shirley shit shiva shotgun showmethemoney showtime shrek shyam sierra sigma signin signup silver silvia
simba simon simone simpson singapore singer singh singing sister sixteen sixty skate skateboard skater skiing skull
skyline skywalker slayer slipknot slut smile smiley smith smoke smoker smokey smoking snake snickers sniper snoopdogg
snoopy snow snowball snowboard snowflake snowman snowwhite snowy soccer socks soda sofia softball software soldier
somebody someone something song sonia sonic sony sooners sophia sophie soprano sorry southpark southside space
spaghetti spain spanish spanky sparky spartan spears speed speedy spencer sphinx spider spiderman spike spirit spock
spongebob sporting sports spring sprite spurs squad squidward squirrel srinivas stacey stacy stalin stallion stanley
star starbucks starcraft stardust starfish starlight startrek starwars steak steel steelers stefan stefanie stella
stephanie stephen steve steven stewart stitch stone stoner stopit storm stormy strawberry street strength striker
strong strongpassword stuart student subaru sugar sugarcane sugarplum summer sunday sunflower sunil sunlight sunny
sunrise sunset sunshine super supergirl superhero superman supersecret superstar superwoman support suresh surfer
surfing susan susanne suzanne suzuki svetlana swag swagger sweden sweet sweetdreams sweetheart sweethome sweetie sweety
swift swimmer swimming sword sydney sylvester sylvia sylvie system taco takashi tamara tammy tango tania tank tara
tasha tatiana taylor teacher team tears techno teddy temp temporary tennessee tennis tequila teresa terminator terrance
terry tesla test tester testing testtest tetris texans texas thailand thanh thanks thankyou thebeatles thebest
thebestone theirs thelma theodore thequickbrownfox theresa third thirteen thirty thisis thisisapassword thisismy
thisismypassword thomas thompson thor thousand three thug thuglife thunder thursday tiffany tiger tigger time timeless
timon timothy tina tinker tinkerbell titan tobacco tobeornottobe toby today todd tokyo tomasz tomato tommy tomorrow
tony tool toor topgun topsecret tornado toronto torres tortoise toshiba totoro tottenham toyota tracey tracy train
trance travel traveler travis tree trevor trial trinity tristan trixie trojan trophy troy truck trump trumpet trust
trustme trustno1 tucker tuesday tulip tupac turbo turkey turkiye turner turquoise turtle tweety twelve twenty twentyone
twilight twitter twothree tyler typepassword tyrone ubuntu ukraine ultimate unicorn uniform united universe university
unknown unlock uranus ursula user username vacation vader valentina valentine valeria valerie vampire vancouver vanessa
vanilla vegas vegeta venezuela venus vera vernon veronica verysecret vicki vicky victor victoria victory vienna vietnam
vijay vikings vikram village villain vincent vinod vintage violet violin viper virginia vishal vivian vladimir vodka
voldemort volkswagen volleyball volunteers volvo voyager wachtwoord waffle wagner waheguru walker wallace walter wanda
warcraft warren warrior wasd washington water watermelon watson wayne weapon weber webmaster website wednesday weed
weekend welcome wendy wesley western westham westside whale whatever whatisthis whatsup whatthefuck whatthehell
whiskers whiskey whisky white whitey whitney whoami whoareyou whore wicked wife william willie willkommen wilson
windows wine winner winnie winniethepooh winning winston winter winteriscoming wireless wizard wolf wolfgang wolverine
wolves wonder wonderful word workout world worldofwarcraft wrestler wrestling wright writer xavier xbox ximena xmas
xray yahoo yamaha yankee yasmin yellow yesterday yesyes yoda yolanda yolo young yourpassword yourself youtube yugioh
yuki yulia yusuf yvette yvonne zachary zealand zebra zelda zeppelin zero zeus zidane ziggy zombie zoro zulu zxcv zxcvbn
zxcvbnm zxczxc
`
    .trim()
    .split(/\s+/)
    .flatMap((word) => [word, `${word}s`]),
);
