import type { CompleteInput, Shape } from '../schema/field.ts';
import { representationWriter } from '../schema/record.ts';
import { validationFailed } from '../schema/validate.ts';

/**
 * Checks that a record is no larger than a body could be (`bytesMax` of JSON), since patches could
 * make it grow.
 * @throws CairnError `validation_failed`
 */
export function checkSize(shape: Shape, record: CompleteInput<Shape>, bytesMax: number): void {
  const json = representationWriter(shape)(record);
  if (json.length <= bytesMax / 3 || Buffer.byteLength(json) <= bytesMax) return;
  const detail = `must be at most ${bytesMax} bytes of JSON`;
  throw validationFailed([{ pointer: '', code: 'too_large', detail }]);
}
