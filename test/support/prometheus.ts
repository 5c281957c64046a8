import assert from 'node:assert/strict';

export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const label = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const helpLine = new RegExp(`^# HELP (${name}) ((?:[^\\\\\\n]|\\\\[\\\\n])+)$`);
const typeLine = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram|summary|untyped)$`);
const sampleLine = new RegExp(
  `^(${name})(?:\\{((?:${label})(?:,${label})*)\\})? ([-+]?(?:\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?|Inf)|NaN)$`,
);

/**
 * Reads Prometheus' text format 0.0.4 and holds it to its rules: every line well-formed, a family's lines together
 * and behind its HELP and TYPE, no sample twice, counters named `_total`, histograms that add up.
 */
export function parseExposition(text: string): ParsedSample[] {
  assert.ok(text.endsWith('\n'), 'the last line must end');
  const samples: ParsedSample[] = [];
  const seen = new Set<string>();
  let family = '';
  let kind = '';
  let helped = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const [help, type, sample] = [helpLine.exec(line), typeLine.exec(line), sampleLine.exec(line)];
    if (help !== null) {
      helped = help[1] ?? '';
      assert.ok(!seen.has(helped), `the family ${helped} stands twice`);
      seen.add(helped);
    } else if (type !== null) {
      [family, kind] = [type[1] ?? '', type[2] ?? ''];
      assert.equal(family, helped);
      if (kind === 'counter') assert.match(family, /_total$/);
    } else {
      assert.ok(sample !== null, `not a line of the format: ${line}`);
      const [, sampleName = '', labelText = '', number = ''] = sample;
      const suffixes = kind === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      assert.ok(suffixes.some((suffix) => sampleName === family + suffix), `${sampleName} is not of ${family}`);
      const key = `${sampleName}{${labelText}}`;
      assert.ok(!seen.has(key), `${key} stands twice`);
      seen.add(key);
      samples.push({ name: sampleName, labels: parseLabels(labelText), value: parseNumber(number) });
    }
  }
  checkHistograms(samples);
  return samples;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [pair] of text.matchAll(new RegExp(label, 'g'))) {
    const at = pair.indexOf('=');
    assert.ok(!(pair.slice(0, at) in labels), `the label ${pair} stands twice`);
    labels[pair.slice(0, at)] = pair.slice(at + 2, -1)
      .replace(/\\(["\\n])/g, (_, character: string) => (character === 'n' ? '\n' : character));
  }
  return labels;
}

function parseNumber(text: string): number {
  return text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
}

function checkHistograms(samples: readonly ParsedSample[]): void {
  const groups = new Map<string, ParsedSample[]>();
  for (const sample of samples.filter(({ labels }) => 'le' in labels)) {
    const { le: _, ...rest } = sample.labels;
    const key = JSON.stringify([sample.name, rest]);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  for (const [key, buckets] of groups) {
    const bounds = buckets.map(({ labels }) => parseNumber(labels['le'] ?? ''));
    assert.deepEqual(bounds, [...bounds].sort((a, b) => a - b), `${key}: bounds out of order`);
    assert.equal(bounds.at(-1), Infinity, `${key}: no +Inf`);
    const counts = buckets.map(({ value }) => value);
    assert.deepEqual(counts, [...counts].sort((a, b) => a - b), `${key}: buckets do not add up`);
    const { le: _, ...rest } = buckets[0]?.labels ?? {};
    const total = samples.find(({ name: other, labels }) =>
      other === buckets[0]?.name.replace(/_bucket$/, '_count') && JSON.stringify(labels) === JSON.stringify(rest));
    assert.equal(total?.value, counts.at(-1), `${key}: _count differs from the +Inf bucket`);
  }
}

/** The value of the first sample of this name that has at least these labels. */
export function sampleValue(
  samples: readonly ParsedSample[], name: string, labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries(labels);
  const fits = (sample: ParsedSample): boolean => wanted.every(([label, text]) => sample.labels[label] === text);
  return samples.find((sample) => sample.name === name && fits(sample))?.value;
}
