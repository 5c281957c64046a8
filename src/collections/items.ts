import { declare, type CollectionDeclaration } from './declaration.ts';

/** Things with a price, in a unit that the installation chooses. */
export const items: CollectionDeclaration = {
  ...declare({
    name: 'items',
    singular: 'item',
    fields: {
      name: { kind: 'text', min: 1, max: 200, example: 'Lamp' },
      price: { kind: 'number', min: 0, max: 1e12, example: 24.5 },
    },
  }),
  isBuiltIn: true,
};
