const isInstalled = /[\\/]node_modules[\\/]/.test(import.meta.dirname);

/** Returns the path of a page of the manual, in a clone or below `node_modules`. */
export function inManual(place: string): string {
  return `${isInstalled ? 'node_modules/cairn-api/' : ''}src/docs/${place}`;
}
