import type { CollectionDeclaration } from './declaration.ts';
import { derivedStart, isReserved } from './define.ts';
import type { Served } from './served.ts';

/**
 * Singular forms of English nouns, for operations, schemas and references such as `movieId`. They
 * agree with json-server (0.17), including its oddities (`bases` → `base`, but `basis` → `basi`),
 * because its files name references this way.
 */

/**
 * Returns the singular of a noun in the same letter case. A singular noun stays as it is.
 *
 * @example
 *     singularize('movies') // 'movie'
 *     singularize('People') // 'Person'
 */
export function singularize(noun: string): string {
  const lower = noun.toLowerCase();
  const singular = toSingular(lower);
  let kept = 0;
  while (kept < singular.length && singular[kept] === lower[kept]) kept += 1;
  const isShouted = lower !== noun && noun === noun.toUpperCase();
  const end = singular.slice(kept);
  return noun.slice(0, kept) + (isShouted ? end.toUpperCase() : end);
}

/**
 * Returns the names that a reference to a collection may have, json-server's first: `PostId`, then
 * `postId` for `Posts`.
 */
export function referenceNames(collection: string): readonly string[] {
  // json-server's `cooky` and `lense` are not what people call a cookie and a lens.
  const endings = [/s$/i, /es$/i, /$/].map((ending) => collection.replace(ending, ''));
  const nouns = [singularize(collection), ...endings].flatMap((noun) => [noun, camelCase(noun)]);
  return [...new Set(nouns)].map((noun) => `${noun}Id`);
}

export function addSingulars({ items: hasItems = true, users = true, collections = [] }: Served) {
  const taken = new Set(collections.map(({ singular }) => singular));
  if (hasItems) taken.add('item');
  return collections.map((each): CollectionDeclaration => {
    if (each.singular !== undefined) return each;
    let singular = toWord(each.isSingle ? each.name : singularize(each.name));
    while (taken.has(singular) || isReserved(singular, users))
      singular = derivedStart.test(singular) ? toWord(`entry-${singular}`) : `${singular}Entry`;
    taken.add(singular);
    return { ...each, singular };
  });
}

const toWord = (name: string): string => camelCase(name).replace(/^\d*$|^(?=\d)/, 'entry$&');

/** Returns a name as one word with a small first letter: `blog_posts` is `blogPosts`. */
const camelCase = (name: string): string =>
  name
    .replaceAll(/[_-]+(\w?)/g, (_, letter: string) => letter.toUpperCase())
    .replace(/^./, (first) => first.toLowerCase());

function toSingular(noun: string): string {
  if (unchanging.has(noun) || unchangingEndings.test(noun)) return noun;
  const irregular = irregulars.get(noun);
  if (irregular !== undefined) return irregular;
  for (const [plural, singular, stems] of endings) {
    if (!noun.endsWith(plural)) continue;
    const stem = noun.slice(0, noun.length - plural.length);
    const fits = (one: string): boolean =>
      one.startsWith('^') ? wholeStem(stem) === one.slice(1) : stem.endsWith(one);
    if (stems === undefined || words(stems).some(fits)) return stem + singular;
  }
  return noun;
}

/** Returns the last word of a stem, such as `p` of `apple-p`. */
const wholeStem = (stem: string): string => stem.slice(stem.lastIndexOf('-') + 1);

const words = (text: string): string[] => text.split(/\s+/);

const unchanging = new Set(
  words(`advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood butter
    cash chassis chess clothing corps debris diabetes energy equipment expertise firmware gallows
    garbage graffiti hardware headquarters health herpes highjinks homework information jeans justice
    kudos mail media mews music news pliers police pollution premises research rice scissors series
    sewage shambles software species staff tennis traffic wealth wildlife yes`),
);
const unchangingEndings = /(?:[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$/;

const irregulars = new Map([
  ['axes', 'axe'],
  ['carves', 'carve'],
  ['dice', 'die'],
  ['dingoes', 'dingo'],
  ['eaves', 'eave'],
  ['feet', 'foot'],
  ['geese', 'goose'],
  ['genera', 'genus'],
  ['genus', 'genus'],
  ['grooves', 'groove'],
  ['oxen', 'ox'],
  ['passersby', 'passerby'],
  ['pickaxes', 'pickaxe'],
  ['quizzes', 'quiz'],
  ['teeth', 'tooth'],
  ['thieves', 'thief'],
  ['tornadoes', 'tornado'],
  ['torpedoes', 'torpedo'],
  ['twelves', 'twelve'],
  ['valves', 'valve'],
  ['volcanoes', 'volcano'],
  ['yeses', 'yes'],
]);

/**
 * Replacements of endings, the first match first. With stems, only after one of them; `^` requires
 * the stem to be the whole beginning of the word.
 */
const endings: readonly (readonly [plural: string, singular: string, stems?: string])[] = [
  ['men', 'man'],
  ['people', 'person'],
  ['children', 'child'],
  ['eaux', 'eau'],
  ['ices', 'ix', 'append matr'],
  ['ices', 'ex', 'cod ind mur sil vert'],
  ['ice', 'ouse', '^l ^m ^titm'],
  ['im', '', 'cherub seraph'],
  ['mata', 'ma', 'anathe dog lem sche stig sto'],
  ['ae', 'a', 'alg alumn vertebr'],
  ['a', 'on', 'criteri phenomen automat organ hedr periheli apheli'],
  ['a', 'um', 'dat bacteri curricul symposi millenni strat ov errat quor addend agend extrem'],
  ['i', 'us', 'alumn bacill cact foc fung loc nucle radi stimul strat syllab termin uter vir'],
  ['ses', 'sis', 'analy cri diagno empha ne parenthe progno synop the'],
  ['sis', 'sis', 'analy cri diagno empha ne parenthe progno synop the'],
  ['tis', 'tis', 'tes'],
  ['tes', 'tis', '^tes'],
  ['movies', 'movie'],
  ['ies', 'ey', '^mon ^smil'],
  [
    'ies',
    'ie',
    '^l ^p ^t ^crosst ^neckt ^coll ^cut ^faer ^food ^gen ^goal ^goon ^group ^lass ^talk',
  ],
  ['ies', 'ie', '^zomb'],
  ['ies', 'y'],
  ['ives', 'ife', 'kn w ^l afterl halfl highl lowl midl nonl nightl'],
  ['ves', 'f', 'ar al el wol ea eo oa oo'],
  ['uses', 'use', '^ a o ab'],
  ['us', 'u', '^ a u em en'],
  ['uses', 'us'],
  ['us', 'us'],
  ['oes', 'o', 'at ch g gr her tt'],
  ['ases', 'as', 'ali g tl tm'],
  ['as', 'as', 'ali g tl tm'],
  ['ises', 'is', 'ar er ir or ur'],
  ['is', 'is', 'ar er ir or ur'],
  ['es', '', 'ch sh ss x zz'],
  ['ss', 'ss'],
  ['s', ''],
];
