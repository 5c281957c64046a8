import type { Browser } from './webdriver.ts';

/** Processor time of the page's thread so far, in ms, which other processes do not affect. */
export async function measureThreadMs(browser: Browser): Promise<number> {
  await browser.devtools('Performance.enable', { timeDomain: 'threadTicks' });
  const { metrics } = await browser.devtools('Performance.getMetrics');
  return metrics.find(({ name }: { name: string }) => name === 'TaskDuration').value * 1000;
}

/** Repetitions of the fixed work in a measurement, and measurements for the median. */
const [runs, measurements] = [4, 7];

/** Reads 50 events and lays out a table of 50 rows: work like the page's, without its code. */
const fixedWork = `
  const event = JSON.stringify({ collection: 'items', id: 7, record: { id: 7, name: 'New 7', price: 1, notes: '' } });
  for (let run = 0; run < arguments[0]; run += 1) {
    const table = document.createElement('table');
    for (let index = 0; index < 50; index += 1) {
      const { collection, record } = JSON.parse(event);
      const row = table.insertRow();
      for (const text of [collection, record.id, record.name, record.price]) row.insertCell().textContent = text;
    }
    document.body.append(table);
    table.getBoundingClientRect();
    table.remove();
  }
`;

/**
 * Milliseconds of the page's thread for a fixed piece of work, here and now. A slow processor, or one that shares its
 * cores and caches with other work, takes longer for this and for the page alike: bounds are multiples of it.
 */
export async function measureUnitMs(browser: Browser): Promise<number> {
  const all: number[] = [];
  for (let measured = 0; measured <= measurements; measured += 1) {
    const before = await measureThreadMs(browser);
    await browser.run(fixedWork, runs);
    all.push(((await measureThreadMs(browser)) - before) / runs);
  }
  // The first one compiles.
  return all.slice(1).sort((one, other) => one - other)[Math.floor(measurements / 2)] ?? NaN;
}
