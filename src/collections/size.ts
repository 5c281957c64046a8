import { moreName, type Input, type Shape } from '../schema/field.ts';
import { validationFailed } from '../schema/validate.ts';

/**
 * Checks that a record is not larger than a body can be, `bytesMax`: patches could make it grow. Its
 * size is the length of its JSON text.
 * @throws CairnError `validation_failed`
 */
export function checkSize(record: Input<Shape>, bytesMax: number): void {
  const json = JSON.stringify(record);
  if (json.length <= bytesMax / 3) return;
  // Callers have the further members next to the others.
  const wrapping = record[moreName] === undefined ? 0 : `"${moreName}":{}`.length;
  if (Buffer.byteLength(json) - wrapping <= bytesMax) return;
  const detail = `must be at most ${bytesMax} bytes of JSON`;
  throw validationFailed([{ pointer: '', code: 'too_large', detail }]);
}
