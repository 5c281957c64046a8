import type { StoreDamageError } from '../../store/format/damage.ts';

/** Says what is damaged. Records that lack the same are told of together. */
export function problemsOf(damage: readonly StoreDamageError[]): string[] {
  const groups = new Map<string, StoreDamageError[]>();
  for (const one of damage) {
    const key = one.misfit === undefined ? one.problem : `${one.file} ${one.misfit.reason}`;
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(one);
  }
  return Array.from(groups.values(), ([first, ...others]) => {
    if (first?.misfit === undefined || others.length === 0) return first?.problem ?? '';
    const { file, offset, misfit, label } = first;
    const ids = [first, ...others].flatMap((one) => one.misfit?.id ?? []);
    const shown = ids.slice(0, 3).join(', ') + (ids.length > 3 ? ', …' : '');
    const count = ids.length.toLocaleString('en');
    const records = `${count} records do not fit their declaration, with the ids ${shown}`;
    return `${file}, from byte ${offset}: ${records}: each ${misfit.reason} [${label}]`;
  });
}
