import { readFileSync } from 'node:fs';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';
import { loadTemplate } from '#platform/kernel/templates.js';

const FOLDER = 'dist/docs/clients';

/** A package of a client, packed by the build (tools/build/pack-clients.mjs). */
export type ClientPackage = {
  language: string;
  installer: 'npm' | 'pip';
  path: string;
  name: string;
  type: string;
  body: Buffer;
};

const view = loadTemplate<{ packages: ClientPackage[] }>(
  import.meta.url,
  './views/client-packages.eta',
);

export function readClientPackages(): ClientPackage[] {
  const read = (file: string) => readFileSync(getPackageFileUrl(`${FOLDER}/${file}`));
  const names = JSON.parse(read('packages.json').toString()) as Record<
    'typescript' | 'python',
    string
  >;
  return [
    {
      language: 'TypeScript',
      installer: 'npm',
      path: `/docs/clients/${names.typescript}`,
      name: names.typescript,
      type: 'application/gzip',
      body: read(names.typescript),
    },
    {
      language: 'Python',
      installer: 'pip',
      path: `/docs/clients/${names.python}`,
      name: names.python,
      type: 'application/zip',
      body: read(names.python),
    },
  ];
}

/** Renders the commands that install the clients. `%ADDRESS%` and `%ROOT%` are filled in as in guides. */
export function renderClientPackages(packages: ClientPackage[]): string {
  return view({ packages });
}
