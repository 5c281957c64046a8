import { idField } from '../schema/field.ts';
import type { CollectionAccess, CollectionDeclaration } from './declaration.ts';

/** The access rules of a collection that declares none. */
export const standardAccess: CollectionAccess = {
  list: 'user',
  create: 'user',
  read: 'user',
  replace: 'owner',
  patch: 'owner',
  remove: 'owner',
};

/** Things with a price, in a unit that the installation chooses. */
export const items: CollectionDeclaration = {
  name: 'items',
  singular: 'item',
  fields: {
    id: idField,
    name: { kind: 'text', min: 1, max: 200, example: 'Lamp' },
    price: { kind: 'number', min: 0, max: 1e12, example: 24.5 },
  },
  access: standardAccess,
  timestamps: false,
  isBuiltIn: true,
};
