import { routeTable } from '../api/route-table.ts';
import { openData } from '../app/data.ts';
import { defaultOptions } from '../app/options.ts';
import { loadFeatures, loadReferences } from '../app/parts.ts';
import { options } from '../config/options.ts';
import { declarationsOf, type Command } from './command.ts';

export const commands: readonly Command[] = [
  {
    name: 'openapi',
    summary: 'Prints the OpenAPI document',
    options: [
      options.collections,
      options.registration,
      options.requireIfMatch,
      options.passwordLengthMin,
      options.basePath,
    ],
    async run({ terminal, read }) {
      const declarations = await declarationsOf(read(options.collections));
      const references = await loadReferences(declarations.collections ?? []);
      const { registry } = openData({ ...defaultOptions, ...declarations, references });
      const table = routeTable([...registry.values()], {
        users: declarations.users,
        roles: declarations.roles,
        registration: read(options.registration),
        requireIfMatch: read(options.requireIfMatch),
        passwordLengthMin: read(options.passwordLengthMin),
      });
      const features = await loadFeatures({ page: false, keys: declarations.users });
      const all = [...table, ...features.flatMap(({ routes = {} }) => Object.values(routes))];
      for (const { documentOf } of features) {
        const document = documentOf?.(all, read(options.basePath));
        if (document !== undefined) terminal.out(`${JSON.stringify(document, null, 2)}\n`);
      }
    },
  },
];
