/**
 * The form of a cluster's records. The key `declaration` has one member for each field:
 *
 *   {"books.id":{"kind":"integer","nullable":false,"required":true},
 *    "books.title":{"kind":"text","nullable":false,"required":true},
 *    "books.authorId":{"kind":"reference","nullable":false,"required":false,"to":"authors"},
 *    "settings.id":{"kind":"single"}}
 *
 * Nodes with different declarations may run together if each can read the others' records and keeps
 * fields that it does not know. So the cluster's declaration is the union of its nodes', and only
 * grows.
 *
 *   case  a field that is declared                  what is done
 *   ----  ----------------------------------------  ---------------------------------------
 *   D0    by both, alike; or by one of them, and    the node starts, and adds its own fields
 *         optional or with a default
 *   D1    by both, differently; or by one of them,  refused, 78: a pause is needed
 *         and required, set by the server or
 *         renamed; or as a reference to users,
 *         or to a collection that both have; or by
 *         one, if the other takes additional
 *         members
 *
 * Earlier versions declared fewer members of a field, and only those are compared with theirs.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { moreName } from '../../schema/field.ts';
import { ClusterError } from './etcd.ts';

/** The fields by `collection.field`. `required` is also true if only servers set a field. */
export type Declaration = JsonObject;

/** Returns the union of both declarations. @throws ClusterError in case D1 */
export function joinDeclarations(own: Declaration, shared: Declaration): Declaration {
  const joined = { ...shared, ...own };
  // Users always exist, except in a new cluster, which shares nothing yet.
  const areBoth = (collection = ''): boolean =>
    collection === 'users'
      ? Object.keys(shared).length > 0
      : [own, shared].every((side) => `${collection}.id` in side);
  for (const [place, field] of Object.entries(joined)) {
    const [here, there] = [own[place], shared[place]].map((each) => JSON.stringify(each));
    const isLike = there === JSON.stringify(own[place], formerMembers) && isFormer(shared[place]);
    if (here === there || isLike || !isJsonObject(field)) continue;
    const isNeeded = field['required'] === true || field['renamedFrom'] !== undefined;
    const [collection] = place.split('.');
    // Callers may send it there as an additional member of any type.
    const isMember = `${collection}.${moreName}` in (here === undefined ? own : shared);
    const isFree =
      !(isNeeded && areBoth(collection)) && !areBoth(field['to']?.toString()) && !isMember;
    if (isFree && (here === undefined || there === undefined)) continue;
    const difference = `${here ?? 'nothing'} to this node, and ${there ?? 'nothing'} to the cluster`;
    throw misfit(`the field ${place} is ${difference}`);
  }
  return joined;
}

/** True for a field declared by an earlier version, which did not compare all members. */
const isFormer = (field: JsonValue | undefined): boolean =>
  isJsonObject(field) && field['nullable'] === undefined;

/** The members that it compared, in its order. */
// prettier-ignore
const formerMembers = ['kind', 'of', 'values', 'unique', 'to', 'onDelete', 'renamedFrom', 'required'];

export function misfit(problem: string): ClusterError {
  const remedy =
    'start it with the previous declaration; or change it in a pause: change the records that do ' +
    'not fit, stop all nodes, run "cairn cluster new-epoch", and start them with the new one';
  return new ClusterError(78, `Cannot use the declared collections: ${problem} [D1]; ${remedy}`);
}
