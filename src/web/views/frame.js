// @ts-check
/** Draws the frame of the views: the rail, the signed-in person and the messages. */
import { showNumber, listWords } from '../api/model.js';
import { bdi, button, draw, h, readInput, onClick, part, set } from '../lib/dom.js';
import { draft } from '../state/draft.js';
import { findCollection, state } from '../state/me.js';
import { toTitle } from '../state/names.js';
import { places } from '../state/places.js';
import { address, go, isGuide, route } from '../state/route.js';
import { initials } from './parts.js';

/** @type {Element | null} */ let tab = null;

export const hideMenu = () => part('menu', HTMLElement).hidePopover();

/** @type {typeof import('./palette.js') | undefined} */ let palette;
onClick('go-to', async () => {
  hideMenu();
  palette ??= await import('./palette.js');
  palette.open();
});
onClick('skip', () => draw('#main'));

/** @param {string} failure the reason why the page does not start */
export function drawFrame(failure) {
  const { me, message, undo, removals } = state;
  const { view, id } = route;
  const isReader = !me && isGuide() && state.description;
  const here = view ? address(view) : `#/${id}`;
  const all = me ? places() : [];
  const groups = [...Map.groupBy(all, ({ group }) => group)];
  drawRail(groups, here);
  const options = groups.flatMap(([label, of]) => {
    const found = of.map(({ href, title }) => h('option', { value: href }, title));
    return label ? h('optgroup', { label }, found) : found;
  });
  set('view', { hidden: !me, value: here, onchange: (event) => go(readInput(event)) }, options);
  set('to-sign-in', { hidden: !isReader });
  const users = findCollection('users');
  set('register', { hidden: !!me || !users || !listWords(users, 'create').includes('optional') });
  set(
    'who',
    { hidden: !me, 'aria-label': `${me?.name} ${me?.role}` },
    me && initials(me.name),
    bdi(me?.name ?? ''),
    ' ',
    h('small', me?.role),
  );
  set('failure', failure && `${failure} The page tries again by itself.`);
  set('main', { hidden: !me && !isReader });
  palette?.drawPalette();
  const undoing = { 'data-key': 'u', 'aria-keyshortcuts': 'u' };
  set('status', message && h('span', message), undo && button('Undo', undo, undoing));
  const leaving = removals.map(({ text, key, undo: keep }) =>
    h('li.row', { key }, h('span', text), button('Undo', keep, undoing)),
  );
  set('removals', false, ...leaving);
  const title = findCollection(view)?.title ?? all.find(({ href }) => href === here)?.title;
  const shown = me ? (title ?? 'Overview') : isReader ? 'API' : 'Sign in';
  const { collection: of, base } = draft ?? {};
  const name = of && !of.single && base && toTitle(of, base.data);
  document.title = [name, shown, 'Cairn'].filter(Boolean).join(' · ');
}

/** @type {(groups: [string, ReturnType<typeof places>][], here: string) => void} */
function drawRail(groups, here) {
  const links = groups.flatMap(([group, of]) => [
    !!group && h('span.group quiet', { key: group }, group),
    ...of.map(({ href, title, total }) => {
      const look = { key: href, href, 'aria-current': href === here && 'page' };
      return h('a', look, h('span', title), total !== undefined && h('small', showNumber(total)));
    }),
  ]);
  set('views', { hidden: groups.length === 0 }, links);
  const current = document.querySelector('#views [aria-current]');
  if (current !== tab) current?.scrollIntoView({ block: 'nearest' });
  tab = current;
}
