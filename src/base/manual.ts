const isInstalled = /[\\/]node_modules[\\/]/.test(import.meta.dirname);

/**
 * Returns where a place of the manual is, such as `access.md#roles`, in a clone or next to
 * `node_modules`.
 */
export function inManual(place: string): string {
  return `${isInstalled ? 'node_modules/cairn-api/' : ''}src/docs/${place}`;
}
