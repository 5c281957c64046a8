/**
 * What common passwords are made of, in lower case and without plurals. `password-rules.ts` finds these words in any
 * spelling, order and repetition, so a few hundred of them refuse about half of the 30,000 most used passwords
 * that are long enough; each was chosen for refusing the most of what those before it let pass.
 */
export const commonWords: ReadonlySet<string> = new Set(
  `
a1b2c3d4 access achilles admin administrator agent007 airplane akash alessandro alex alien allen alpha amanda amber
amsterdam andrea andrew angel anger anna anthony antonio apollo apple april arsenal ashley assassin asshole atlantis
august austin autumn awesome baby babydoll babygirl bailey barcelona baseball bass bastard batman batterystaple
beach bear beatles beckham beer bella berry betty billy birthday bitch black blade blessing blink blood blue boat
bobby boobs brandon brian broncos brooklyn brown bruce bubba bubbles buckeyes buddy budweiser buffalo bull bulldog
bullshit buster butter cairn camaro camel cameron candy cannabis captain carol cartman casey cats catwoman celtic
champion change changeme charger charles charlie chelsea cherries chester chevrolet chevy chicago chicken chief
china chris cinnamon class cobra cocacola cock coke coldplay colombia colorado company computer cookie cool cooldude
corleone correcthorse corvette country cowboy crazy cricket crystal cutie daddy daisy dallas dance daniel dark
darkness david dead deadpool death december default delta demon designer destiny devil diablo diamond dick digital
dinosaur disco dodge doggy dolphin doors dragon dragonball dream drummer ducati dusty dutch dylan eagle eastside
edward edwin eight einstein ekaterina elephant eleven engineer enterprise erica erin espresso eternity everton
excalibur explorer falcon family fast february ferrari fire fireball fishing five flame florida flower flyers
football force ford forever forgot four france francis frank freedom french friday friend frog fuck fuckme fuckoff
fuckyou gabriel game gameover gandalf gang gangster garfield gators genesis george german ghost giants ginger gizmo
gladiator godfather godzilla gold golden goldfish golf golfer goodgirl goodluck google goose gordon gorilla grace
gray green guest guinness guitar halflife hammer happy harley harry harrypotter hateyou hawaii hawk heather heineken
hell hello hercules hero hill hockey holly home honda honey hongkong horny horse hotgirl hotstuff house houston
hunter icecream iceman ilove iloveyou india infinity internet irish iron ironmaiden island istanbul italia jack
jackson james jamesbond jane january jasmine jeffrey jelly jessica jesus jimmy john johnny joker jordan joseph
joshua july june jupiter justice justin juventus kangaroo karolina kate kawasaki kelly kenneth keyboard kill killer
king kissmyass kitty kristin labrador lady lake lakers lance leavemealone leeds lemon letmein life lightning lincoln
linda lion lisa live liverpool login london love lover loveyou lucky madison maggie magic maradona marcel march
maria marijuana marine marlboro marley martin mary maserati master matrix matthew maverick maxim maxwell mazda
megadeth melanie melissa mercedes mercury merlin metal metallic michael michaeljordan michel michigan mickey
microsoft miller million minecraft molly monday money monkey montana montreal moon moonbeam moonlight morpheus
mother motorola mountain mouse music mustang mypassword natalie natasha nathan newyork nicole night nightwish nikita
nine nintendo nirvana nitro nokia norma nothing november october office omega orange packers pakistan pantera
panther paradise party pass password passwort patches patrick patriots peach pearl penguin penny pepper pepsi peter
philip phillies phoenix piano pimp pineapple pinkfloyd pizza platinum playboy playstation pokemon pooh porn porsche
portland portugal poseidon power precious predator prince private pumpkin punkrock purple pussy pyramid qwerty
radiohead raiders rainbow rammstein rasta realmadrid rebecca redskins redsox richard river robert robin rock rocket
rocky roman rome ronald rooster root rose ross russia rusty sabrina salasana samantha sammy samsung sandiego sandy
santa sapphire sara sasha satan saturday sausage scarface scooby scooter scorpio scotland scott secret security
september server service seven sexy shadow shane shannon sheep sherlock shit showtime sigma silver simpson slayer
slipknot smith smoke snake snickers snow snowball snowboard soccer softball software sonic southpark space sparky
spartan speed spencer spider spiderman spongebob spring squirrel srinivas stallion stanley star starcraft starfish
steel stephen steve stone storm strawberry sugar summer sunday sunny sunshine super superman svetlana sweet swimming
sword system taylor teddy terminator test testing thailand thankyou that thirteen this thomas three thuglife thunder
thursday tiffany tiger tigger time tinker tinkerbell titan tommy tottenham travel tree trinity truck trust trustno1
tuesday turbo turkey twelve twilight ultimate united user username vacation valentina vampire vanessa vegas victor
vincent violet viper vladimir volvo voyager walker warcraft warrior water wednesday welcome westside whatever
whiskers white william windows winston winter with wolf wolfgang wolverine wonder word world yamaha yankee your
zachary zeppelin
`
    .trim()
    .split(/\s+/)
    .flatMap((word) => [word, `${word}s`]),
);
