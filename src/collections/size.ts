import { CairnError } from '../base/errors.ts';
import { isJsonObject, scan } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { moreName, type Input, type Shape } from '../schema/field.ts';
import { validationFailed } from '../schema/validate.ts';

/**
 * Checks that a record is not larger than one that can be sent back as it was read: patches could
 * make it grow.
 * @throws CairnError `validation_failed`
 */
export function checkSize(record: Input<Shape>): void {
  const { [moreName]: more = null } = record;
  const json = JSON.stringify(isJsonObject(more) ? { ...record, ...more, [moreName]: 0 } : record);
  if (json.length < smallLength) return;
  let detail = `must be at most ${limits.recordBytesMax} bytes of JSON`;
  if (Buffer.byteLength(json) <= limits.recordBytesMax) {
    try {
      scan(json, limits.jsonValuesMax - ownMembers, limits.jsonMembersMax - ownMembers);
      return;
    } catch (error) {
      if (!(error instanceof CairnError)) throw error;
      detail = error.message.replace('Cannot read the JSON:', 'must not be');
    }
  }
  throw validationFailed([{ pointer: '', code: 'too_large', detail }]);
}

/** The server adds at most `id` and two timestamps, and `.more` is no member. */
const ownMembers = 4;
/** A shorter record is within all bounds: a member takes five characters at least, `"":1,`. */
const smallLength = 5 * (limits.jsonMembersMax - ownMembers);
