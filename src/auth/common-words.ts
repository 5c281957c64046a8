/**
 * What common passwords are made of: words, names, teams, brands, phrases, keys in a row; of at least four characters,
 * in lower case, without plurals. `password-rules.ts` finds them in any spelling, order and repetition, so a few
 * thousand words stand for the millions of entries that lists of leaked passwords have.
 */
export const commonWords: ReadonlySet<string> = new Set(
  `
a1b2c3 a1b2c3d4 aa123456 abc123 abcd abcd1234 abcde abdullah able about above access account acdc achilles acmilan
across action actor actress adams aditya admin administrador administrator admiral adobe adventure africa after again
against agent007 agnieszka agree ahmed airplane ajax akash akira alabama aladdin alaska alejandra alejandro alessandra
alessandro alex alexander alexandra alexey alexis alien alive allah allen allow almost alone alpha also although always
amanda amazing amazon amber amen america american americano amir amit among amount amsterdam anakin anand anarchy
anastasia anderson andrea andrew andrey android angel angela angelic angelina anger angry anil animal anita anna annie
anniversary another answer anthony antoine antonio anybody anything apartment apollo apollo11 apple april aragorn area
argentina ariel arizona arjun army around arsenal artem arthur artist arun asdasd asdf asdfgh asdfghjkl ashley ashok
assassin asshole athena athens atlanta atlantis atlas audi august austin australia author autumn avengers avenue away
awesome ayse azerty babe baby babyboy babydoll babygirl back backup bacon badboy badger badgirl bailey baker ball
baller ballin baltimore bambi banana band bandit bandung bangalore bangkok bangladesh banjo bank banking barbara barbie
barcelona barney bart bartek base baseball basketball bass bastard batman batterystaple battle battlefield baxter
bayern beach beagle bear beat beatles beautiful beauty beaver becker beckham become beer beetle before began begin
behind beijing believe believer bella bemyvalentine benfica bengals benjamin bentley berlin berry best bestever
bestfriend beta beth bethany better betty between beyonce bible bicycle bieber bienvenue bigboy bigdaddy bigdog biggie
bigmac bigred bigtits biking billion billy binary bingo biology bird birmingham birthday biscuit bison bitch black
blackberry blackbird blackcat blackie blackjack blade blaze bleach blessed blessing blink blink182 blood bloody blossom
blue blueberry bluesky bluetooth board boat bobby bobmarley boca body bomber bond007 bones bonnie boobs book boomer
boots boris born boston both bottom bowie boxer boxing boyfriend boys brandon brandy brasil braves bravo brazil break
brenda brian bridge bring brisbane bristol britain british britney broken broncos brooke brooklyn brother brown brownie
bruce bruins brussels brutus bryan bubba bubbles buckeyes buddha buddy budweiser buffalo buffy bugatti bugsbunny build
builder bull bulldog bullet bullshit bumblebee bunny burger burn burrito bush business buster busy butter butterfly
byebye caesar cairn cairo caleb california call callmemaybe callofduty calvin camaro came camel camelot cameron camille
camp campbell canada canadian candy candycane cannabis canucks capital cappuccino captain captainamerica card cardinals
care carlos carmen carol carolina caroline carpediem carrot carry cars carter cartman case casey cash casino casper
catherine cats catwoman cause cell celtic center central century cereal certain chair challenger champion chance change
changeit changeme chaos charger charizard charles charlie cheese cheeseburger cheesecake cheetah cheguevara chelsea
chemistry chennai cherries cherry cheryl chester chevrolet chevy chewbacca chiara chicago chicken chico chief chihuahua
child children chile china chinese chloe chocolate choose chris christ christian christina christine christmas
christopher church churchill cigarette cincinnati cinderella cindy cinnamon circle cisco city claire clark class
classic classroom claudia clayton clean clear cleo cleopatra cleveland climb clinton clock close cloud coach coat cobra
cocacola cock cocktail coco cocoa coconut cody coffee cognac coke cold coldplay colin college collins colombia colonel
color colorado colour colts columbia come comeon commander common company complete computer concert connor contain
contrasena control cook cookie cool coolboy cooldude coolgirl coolguy coolman cooper copper copy corey corinthians
corleone corner corona corporal corporate correct correcthorse correcthorsebatterystaple corvette cosmo cost cougar
could count counter counterstrike country county course court courtney cover cowboy cowgirl crap crazy creed crew
cricket crimson crips cristina cross crowd cruz crying crystal cuba cubs cupcake current curtis cute cutie cutiepie
cycle cycling cynthia daddy dagger daily daisy dakota dallas damian dammit damn dance dancer dancing danger dangerous
daniel daniela danielle dark darkness darling darren darthvader data database dave david davidson davis dawn dead
deadly deadpool deal dean death debbie debian deborah december decide deep deepak deer default delhi dell delta demi
demo demon denise denmark dennis dentist denver depeche deputy derek desert design designer desktop destiny detroit
deutschland develop developer devil dexter diablo diamond diana diane diaz dick diesel different digimon digital dinesh
dinner dinosaur direct director dirty disco discovery distance divide dixie dmitry docker doctor dodge dodgers doggie
doggy dogs dollar dolphin dominic dominik donald donkey donna donotforget dontworrybehappy door doraemon doris dorothy
dortmund dory double douglas down dragon dragonball draw dream dreamer dreaming dress drink drive driver drop drummer
drums dublin ducati duck dude duke dumbledore dumbo duncan during dustin dusty dutch dylan each eagle early earth east
easter eastside easy echo eddie edgar edge edinburgh edison eduardo edward edwin eeyore effect egypt eight eighteen
eighty eileen einstein either ekaterina elaine eleanor elephant eleven elite elizabeth ellen elmo else elvis emerald
emily eminem emma empty emre ending enemy energy engine engineer engineering england english enjoy enough enrique enter
enterpassword enterprise enteryourpassword equal eric erica erik erin ernest escape espana espresso esteban eternal
eternity ethan eugene europe evan evanescence evelyn evening event ever everton every everyone everything evil exact
example excalibur except exit experience explain explorer express extreme eyes face facebook fact fair faith falcon
fall family familyguy farmer farming fast faster father fatima fatma fear february federica feel feet felix fernanda
fernando ferrari feyenoord fido field fifty fiftycent fight fighter figure fill film final finalfantasy finance find
fine finger finish finland fiona fire fireball firebird firefighter firefly fireman first fischer fish fisherman
fishing fitness five flame flamengo flat flight floor florence flores florida flower floyd fluffy flyers flying follow
followme food foot football force ford forest forever forever21 forgetme forgot forgotten fortnite fortune forty
fortyniners forward found four foxes foxtrot france francesca francesco francis francisco francois frank frankie
franklin fred freddie freddy free freedom french fresh friday friend friendship frodo frog froggy from front fruit fuck
fucker fucking fuckit fuckme fuckoff fuckyou full funny funtime furious future gabriel gabriela gaga galaxy gambler
gambling game gameboy gameover gamer gaming gamma gandalf gandhi ganesh gang gangsta gangster ganja garcia garden
garfield garlic gary gate gators gaurav gave gavin gecko geheim general genesis genius gentle geoffrey george georgia
gerald gerard german germany getmoney ghetto ghost giant gift gilbert gina ginger giovanni giraffe girl girlfriend
github gitlab giulia giuseppe give giveup gizmo gladiator glasgow glass gloria glory gmail goalkeeper goat goaway
godbless godblessyou goddess godfather godisgood godislove godzilla gohan gohome goku gold golden goldeneye goldfish
golf golfer gollum gomez gone gonzales gonzalez good goodboy goodbye goodgirl goodluck goodmorning goodnight goodtimes
goofy google goose gordon gorgeous gorilla government grace gracie graham grant grape grass gray great greece green
greenday greg gregory grey ground group grow guadalupe guess guest guevara guide guillermo guinness guitar guitarist
gunner gustavo gutierrez gypsy hacker hacking hades hair hakunamatata half halflife halloween halo hamburger hammer
hamster hand handsome hannah hans hansolo happen happiness happy happybirthday happyday happynewyear hard hardware
harley harleydavidson harold harris harry harrypotter haruka harvey haslo hassan hate hateyou have hawaii hawaiian hawk
head hear heard heart heat heather heaven heavy hector heidi height heike heineken held helen hell hello hellohello
hellokitty helloworld help hendrix henry herbert hercules here hermione hernandez hero heroes hershey heslo hidden high
highschool hill hiphop hiroshi hisher history hithere hitler hobbit hockey hoffmann hogwarts hold hole holiday holland
holly hollywood home homeboy homer homesweethome homie honda honey honeybee hongkong hope horny horse hospital hotboy
hotel hotgirl hotmail hotstuff hottie hour house houston howard huge hugs hulk human hundred hungry hunter hunting
hurricane hurry husband huskies husky hussein hustle hustler iamgod iamthebest ibrahim icecream iceman ichigo idea
ignacio igor ihate ilove ilovegod ilovejesus ilovemyfamily ilovemylife ilovemyself iloveu iloveyou iloveyoubaby
iloveyouforever iloveyoumom iloveyousomuch imagine imthebest india indian indiana indigo indonesia inferno infinity
insane insect inside instagram intel intermilan internet inthenameofgod iphone ireland irish iron ironmaiden ironman
isaac isabel isabella isabelle island israel istanbul itachi italia italian italy ivan iwillsurvive jack jackdaniels
jackie jackpot jackson jacob jacqueline jacques jaguar jaime jakarta jake jakub jamaica james jamesbond jamie jane
janet janice january japan japanese jared jasmine jason jasper javier jayz jazz jean jeanette jedi jeff jefferson
jeffrey jelly jellybean jenna jennifer jenny jeremy jerome jerry jerusalem jesse jessica jessie jesus jesuschrist
jesusislord jesuslovesme jets jill jimena jimmy joan joanna joanne joaquin joel joey johanna john johnny johnson join
joker jonas jonathan jones jordan jorge jose joseph josh joshua journey joyce juan juanita judith judo judy juergen
juice julia julian juliana julie julien juliet juliett july jump june jungle jupiter just justice justin juventus kamil
kangaroo karate karen karina karl karma karolina katarzyna kate katherine kathleen kathryn kathy katie katrina kawasaki
kayla keep keith kelly kelsey kenji kennedy kenneth kenny kentucky kenya kerry kevin keyboard keys khadija khalid kids
kill killer kilo kimberly kind king kingdom kingkong kiran kirby kirsten kiss kisses kissme kissmyass kitchen kitten
kitty klaus knew knicks knife knight know known koala kobe korea korean korn krishna kristen kristin kristina krzysztof
kumar kurt kyle kyoto labrador lacey lady ladybug ladygaga lake lakers lakshmi lamb lamborghini lance lancelot land
language laptop large larry last lasvegas late later latte laugh laughing laura lauren laurence lawrence lawyer lead
leader leaf leah leanne learn leave leavemealone lebron ledzeppelin leeds leet left legal legend legolas lemon lemonade
lenin lennon lenovo leon leonard leonardo leopard leslie less letmein letmeinnow letmeinplease letsgo letter level
lewis lexus liam liberty library life lifetime light lighter lightning like lillian lily lima lincoln linda lindsay
lindsey line link linkedin linkin linkinpark linux lion lisa lisbon list listen little live liverpool living lizard
lkjhgfdsa lmao locked logan login logon lois loki london lonely long longhorns look lopez lord lordoftherings
loremipsum lorena lorenzo lori lorraine losangeles lose losenord lost lottery lotus loud louie louis louise love loved
lovely loveme lovepassword lover loveyou loving lucas lucero lucia luciana lucifer luck lucky lucky7 luckyone lucy
luffy luigi luis lukasz luke luna lynn machine mackenzie made madeline madison madman madonna madrid mafia magdalena
maggie magic magical magician magnet mahesh mail main major make makemoney malaysia malgorzata mama manager manchester
mandela mango manhattan manila manish manoj manuel manunited many maple mapleleafs maradona marc marcel marcela march
marcia marcin marco marcus marek margaret maria mariah marian mariana maricel marie marijuana marilyn marina marine
mariners mario marion marisol mark market marlboro marlene marley marlon mars marsha marshall marshmallow martha martin
martina martinez martini marvel marvin mary maserati mason master mastermind match mateo mateusz math mathematics
matrix matt matteo matter matthew maureen maurice mauricio maverick maxim maxime maxine maxwell maytheforcebewithyou
mazda mccartney mean meat medical medicine meet megadeth megan mehmet melanie melbourne melinda melissa melon member
mercedes mercury meredith merlin merrychristmas message messi metal metalhead metallic metallica metroid mets mexican
mexico meyer miami michael michaeljackson michaeljordan michal michel michelle michigan mickey mickeymouse microsoft
middle midnight might miguel mike mikey milan milano mildred mile miley military milk miller million millionaire milo
milton mind mine minecraft minhanh minnie minute miranda mirror miss misty mitchell mittens mnbvcxz mobile mocha mode
model modem modern mohamed mohammad mohammed molly moment mommy monday money moneymoney monica monika monique monitor
monkey montana montreal moon moonbeam moonlight moore morales mordor more morgan moriarty morning morpheus morris
moscow most motdepasse mother motorbike motorcycle motorola mountain mouse mouth move movie much mueller mufasa muffin
muhammad mukesh mulan mumbai mummy murder murphy music musical musician must mustafa mustang mypass mypassword myra
mysecret myself mysql mystery mystic nachos nadia nadine nail naked nala name naomi napoleon narnia naruto nasa natalia
natalie natasha nathalie nathan nathaniel nature naveen navy near neck need needle nelson nemo neptune netflix network
nevada never neverforget nevergiveup newbie newcastle newpassword news newton newyear newyork newyorkcity next neymar
nguyen nice nicholas nick nicolas nicole nigeria night nightwish nikhil nikita nikki nina nine ninety ninja nintendo
nirvana nissan nitro noah nobody noise nokia nomad nono noob noodle nopassword nora norma normal norman north northside
norway nose note notebook nothing novel november nude nuggets number number1 numberone nurse nvidia oatmeal obama
object observe ocean october odyssey office often ohio okay okidoki oksana oldpassword oldschool oleg olga oliver
olivia olympus omar omega once onedirection onepiece onetwothree onion only open opensesame openthedoor openup oracle
orange orchid order oreo orioles orlando ortiz osaka oscar other otis otter ourpassword ourselves outlaw outlook
outside over owen pablo packers pacman page paint painter pair pakistan palm palmeiras pamela pancake panda pantera
panther paola papa paper paradise parent paris park parker parola parrot part party partytime pass passe passw0rd
passwd password passwort past pasta patches patricia patrick patriots patty paul paula pauline pavel pawel peace
peaceful peach peaches peanut peanutbutter pearl pebbles pedro pegasus peggy pele pencil penguin penny people pepper
pepsi perez perfect perhaps period person peru peter peterpan peterson petra pharaoh phil philadelphia philip philippe
philippines phillies phillip phoenix phone photo phuong phyllis physics piano pickles picture piece pierre pigeon piggy
piglet pikachu pilar pilot pimp pimpin pineapple pink pinkfloyd pinky pioneer piotr pirate pistol pitbull pittsburgh
pizza place plain plan plane planet plant plastic plate platinum play playboy player playgirl playstation please plenty
pluto pocahontas pocket point poiuytrewq pokemon poker poland police policeman polska pony poodle pooh pool poor
popcorn popeye popular porn porsche portland porto portugal poseidon position possible post postgres potato potter
power powerful practice pradeep praisethelord prakash prasad precious predator present president presley press preston
pretty price prince princess print prison private priya priyanka problem producer product professor program programmer
programming protect proud psycho public pudding pull pumbaa pumpkin punk punkrock pupil puppies puppy pure purple push
pussy pyramid python qazwsx quebec queen question quick quickbrownfox quiet quite qweasd qweasdzxc qweqwe qwer qwert
qwerty qwertz rabbit race racecar racer rachel racing radio radiohead rafael rahul raiders rain rainbow rainy raise
rajan rajesh ralph ramesh ramirez rammstein ramon randy ranger rapper rapunzel raquel rascal raspberry rasta raul raven
ravi raymond reach read reader ready reagan real realmadrid reason rebecca rebel record redbull redskins redsox
redwings reed reggae regina reginald remember renee repeat report rest result retriever retro return reyes rhonda
ricardo rich richard rick ricky ride rifle right rihanna riley ring rise rita river road robert roberta roberto robin
robinhood robinson roblox rocco rocio rock rocket rocknroll rockstar rocky rodeo rodney rodolfo rodrigo rodriguez rofl
roger rohit roland rollingstones roman rome romeo ronald ronaldo ronnie room rooney roosevelt rooster root rosa rose
rosemary rosie ross rottweiler round router roxanne roxy ruben ruby rudy rufus rugby rule runner running russia russian
rusty ruth ryan sabine sabrina sachin sadie safe safety saibaba said sail sailing sailor sailormoon saints sakura
salasana sally salt salvador samantha same sammy sample samson samsung samuel samurai sanchez sand sandeep sandiego
sandra sandwich sandy sanfrancisco sanjay santa santaclaus santiago santos santosh sapphire sara sarah sasha sassy
sasuke satan satish saturday saturn sausage savannah save scale scarface scarlet schmidt schneider school schulz
science scooby scoobydoo scooter score scorpio scorpion scotland scott scotty scout seahawks sean search season seat
seattle sebastian second secret secreto secretpassword secure securepassword security seed selena self sell send senha
sense sentence seoul september serena sergeant sergey sergio serious serve server service sesame seth settle seven
seventeen seventy sexsex sexy shade shadow shakira shall shane shanghai shannon shape share shark sharon sharp shaun
shawn sheba sheep sheila shelby shelly sheriff sherlock sherry shield ship shirley shirt shit shiva shoe shop shore
short shotgun should shoulder shout show shower showmethemoney showtime shrek shyam side sierra sight sigma sign signin
signup silent silk silver silvia simba similar simon simone simple simpson since sing singapore singer singh singing
single sister sixteen sixty size skate skateboard skater skiing skill skin skull skyline skywalker slayer sleep
slipknot slow slut small smell smile smiley smith smoke smoker smokey smoking smooth snake snickers sniper snoopdogg
snoopy snow snowball snowboard snowflake snowman snowwhite snowy soccer soccer1 socks soda sofia soft softball software
soil soldier solid solution some somebody someone something song sonia sonic sony soon sooners sophia sophie soprano
sorry sound south southpark southside space spaghetti spain spanish spanky sparky spartan speak spears special speed
speedy spell spencer spend sphinx spider spiderman spike spirit spock spongebob spoon sporting sports spot spring
sprite spurs squad square squidward squirrel srinivas stacey stacy stage stalin stallion stand stanley staple star
starbucks starcraft stardust starfish starlight start startrek starwars state station stay steak steam steel steelers
stefan stefanie stella step stephanie stephen steve steven stewart stick still stitch stone stoner stop stopit store
storm stormy story straight strange stranger strawberry stream street strength stretch striker string strong
strongpassword stuart student study subaru subject success such sudden sugar sugarcane sugarplum suit summer sunday
sunflower sunil sunlight sunny sunrise sunset sunshine super supergirl superhero superman supersecret superstar
superwoman support sure suresh surface surfer surfing surprise susan susanne suzanne suzuki svetlana swag swagger
sweden sweet sweet16 sweetdreams sweetheart sweethome sweetie sweety swift swim swimmer swimming sword sydney sylvester
sylvia sylvie symbol system table taco takashi take talk tall tamara tammy tango tania tank tara tasha taste tatiana
taylor teach teacher team tears techno teddy tell temp temporary tennessee tennis tequila teresa terminator terrance
terry tesla test test123 tester testing testtest tetris texans texas thailand than thanh thank thankyou that thebeatles
thebest thebestone their thelma them then theodore thequickbrownfox there theresa these they thick thin thing think
third thirteen thirty this thisis thisisapassword thisismy thisismypassword thomas thompson thor those though thought
thousand three through throw thug thuglife thunder thursday thus ticket tiffany tiger tigger time timeless timon
timothy tina tinker tinkerbell tiny titan tobacco tobeornottobe toby today todd together tokyo told tomasz tomato tommy
tomorrow tone tony tool toor topgun topsecret tornado toronto torres tortoise toshiba total totoro tottenham touch
toward tower town toyota tracey track tracy trade train trance travel traveler travis tree trevor trial triangle
trinity trip tristan trixie trojan trophy trouble troy truck true trump trumpet trust trustme trustno1 tucker tuesday
tulip tupac turbo turkey turkiye turn turner turquoise turtle tweety twelve twenty twentyone twilight twitter twothree
tyler type typepassword tyrone ubuntu ukraine ultimate under unicorn uniform unit united universe university unknown
unlock until upon uranus ursula user username usual vacation vader valentina valentine valeria valerie valley value
vampire vancouver vanessa vanilla vary vegas vegeta venezuela venus vera vernon veronica very verysecret vicki vicky
victor victoria victory vienna vietnam view vijay vikings vikram village villain vincent vinod vintage violet violin
viper virginia vishal visit vivian vladimir vodka voice voldemort volkswagen volleyball volunteers volvo voyager
wachtwoord waffle wagner waheguru wait walk walker wall wallace walter wanda want warcraft warm warren warrior wasd
wash washington watch water watermelon watson wave wayne weapon wear weather weber webmaster website wednesday weed
week weekend weight welcome welcome1 well wendy went were wesley west western westham westside whale what whatever
whatisthis whatsup whatthefuck whatthehell wheel when where which while whiskers whiskey whisky white whitey whitney
whoami whoareyou whole whore wicked wide wife wild will william willie willkommen wilson wind window wine wing winner
winnie winniethepooh winning winston winter winteriscoming wire wireless wish with wizard wolf wolfgang wolverine
wolves woman women wonder wonderful wood word work worker workout world worldofwarcraft worry would wrestler wrestling
wright write writer wrong xavier xbox xbox360 ximena xmas xray yahoo yamaha yankee yard yasmin year yellow yesterday
yesyes yoda yolanda yolo young your yourpassword yourself youtube yugioh yuki yulia yusuf yvette yvonne zachary zealand
zebra zelda zeppelin zero zeus zidane ziggy zombie zoro zulu zxcv zxcvbn zxcvbnm zxczxc
`
    .trim()
    .split(/\s+/)
    .flatMap((word) => [word, `${word}s`]),
);
