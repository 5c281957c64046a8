import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectDirectory } from '../support/source.ts';
import { referenceNames, singularize } from '../../src/collections/nouns.ts';

test('the singular of a frequent noun is the one that json-server finds', () => {
  const { nouns } = JSON.parse(readFileSync(join(projectDirectory, 'test', 'collections', 'nouns.json'), 'utf8'));
  assert.equal(nouns.length, 1000);
  for (const line of nouns) {
    const [noun, plural, ofNoun = noun, ofPlural = noun] = line.split(' ');
    assert.deepEqual([singularize(noun), singularize(plural)], [ofNoun, ofPlural], line);
  }
});

/** Nouns of `db.json` files, with the answers of json-server 0.17.4. */
const others: Readonly<Record<string, string>> = {
  movies: 'movie', heroes: 'hero', statuses: 'status', status: 'status', series: 'series', buses: 'bus',
  children: 'child', people: 'person', data: 'datum', media: 'media', product: 'product', news: 'news',
  addresses: 'address', categories: 'category', knives: 'knife', wolves: 'wolf', analyses: 'analysis',
  criteria: 'criterion', matrices: 'matrix', indices: 'index', cookies: 'cooky', caches: 'cach', quizzes: 'quiz',
  expenses: 'expense', courses: 'course', houses: 'house', menus: 'menu', atlases: 'atlas', photos: 'photo',
  blog_posts: 'blog_post', blogPosts: 'blogPost', 'apple-pies': 'apple-pie', zombies: 'zombie', sheep: 'sheep',
  schemata: 'schema', viruses: 'virus', octopus: 'octopus', mice: 'mouse', feet: 'foot', salesmen: 'salesman',
  Posts: 'Post', People: 'Person', Men: 'Man', POSTS: 'POST', CATEGORIES: 'CATEGORY', s: '', x1: 'x1',
};

test('the singular of a noun of a db.json is the one that json-server finds, in its letter case', () => {
  for (const [noun, singular] of Object.entries(others)) assert.equal(singularize(noun), singular, noun);
});

test('a reference is called by the singular, as json-server writes it, or by a usual variant', () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    movies: ['movieId', 'moviId', 'moviesId'],
    Posts: ['PostId', 'postId', 'PostsId', 'postsId'],
    cookies: ['cookyId', 'cookieId', 'cookiId', 'cookiesId'],
    blog_posts: ['blog_postId', 'blogPostId', 'blog_postsId', 'blogPostsId'],
    product: ['productId'],
  };
  for (const [collection, names] of Object.entries(cases)) assert.deepEqual(referenceNames(collection), names);
});
