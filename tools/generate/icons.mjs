// Makes the table of stamp icons from Material Design Icons (Apache-2.0, see NOTICE). Run by hand when an icon is added:
//   npm install --no-save --prefix FOLDER @mdi/svg@7.4.47 && node tools/generate/icons.mjs FOLDER
// The package has 7,447 files, too many for every clone to install.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const TABLE = 'libs/loyalty/cards/stamp-icons.ts';

const FILES = {
  coffee: 'coffee',
  heart: 'heart',
  star: 'star',
  check: 'check-bold',
  smile: 'emoticon-happy',
  cup: 'cup',
  beer: 'beer',
  wine: 'glass-wine',
  cocktail: 'glass-cocktail',
  ice_cream: 'ice-cream',
  cake: 'cake-variant',
  croissant: 'food-croissant',
  pizza: 'pizza',
  burger: 'hamburger',
  scissors: 'content-cut',
  razor: 'razor-double-edge',
  lipstick: 'lipstick',
  spa: 'spa',
  dumbbell: 'dumbbell',
  paw: 'paw',
  flower: 'flower',
  leaf: 'leaf',
  book: 'book-open-variant',
  shopping_bag: 'shopping',
  gift: 'gift',
  car: 'car',
  bike: 'bike',
  ticket: 'ticket',
  crown: 'crown',
  diamond: 'diamond-stone',
  sun: 'white-balance-sunny',
};

/**
 * Drawn for Inkpad, because the set has none, or none that is recognised on a small stamp. Holes run the other way round
 * than what they are in.
 */
const DRAWN = {
  bubble_tea:
    'M13.2 1h2.1l-.8 3.4A7 7 0 0 1 19 9H5a7 7 0 0 1 7.5-4.9zM5.3 10h13.4l-1.5 11.1c-.1.5-.5.9-1 .9H7.800c-.5 0-.9-.4-1-.9zM8 19.300a1.200 1.200 0 1 0 2.400 0a1.200 1.200 0 1 0-2.400 0zM11 17.200a1.200 1.200 0 1 0 2.400 0a1.200 1.200 0 1 0-2.400 0zM13.600 19.500a1.200 1.200 0 1 0 2.400 0a1.200 1.200 0 1 0-2.400 0z',
  nail_polish:
    'M9.700 2h4.600l.7 8H9zM8 11h8c1.700 1 2.500 2.600 2.500 4.500v4c0 1.400-1.100 2.500-2.500 2.500H8c-1.400 0-2.500-1.100-2.500-2.500v-4C5.500 13.600 6.300 12 8 11zM7.600 15.200v3.600c0 .5.300.8.800.8s.8-.300.8-.8v-3.600c0-.5-.300-.8-.8-.8s-.8.300-.8.8z',
  salad:
    'M2 13h20c0 3.600-2.200 6.700-5.300 8.100V22H7.300v-.9C4.200 19.700 2 16.600 2 13zM5 12a3.600 3.600 0 0 1 1.900-5.900A4.600 4.600 0 0 1 14.800 4.200a4.200 4.200 0 0 1 5.100 5.300c-.2.900-.6 1.700-1.200 2.500h-2.500l1.600-4-1.200-.5L14.800 12h-3L10 7.700l-1.200.500L10.400 12z',
  bread:
    'M2 12.2C2 8.3 6.2 5.5 12 5.5s10 2.8 10 6.7c0 1.5-.5 2.7-1.3 3.5v1.6c0 1-.7 1.7-1.7 1.7H5c-1 0-1.7-.7-1.7-1.7v-1.6C2.5 14.9 2 13.7 2 12.2zM8.83 8.51A.7 .7 0 0 0 7.57 7.89L5.77 11.49A.7 .7 0 0 0 7.03 12.11zM13.54 7.88A.7 .7 0 0 0 12.26 7.32L10.46 11.52A.7 .7 0 0 0 11.74 12.08zM18.03 8.51A.7 .7 0 0 0 16.77 7.89L14.97 11.49A.7 .7 0 0 0 16.23 12.11z',
  sushi:
    'M2.2 12.4A7.6 4.4 0 0 1 17.4 12.4V18A7.6 4.4 0 0 1 2.2 18zM3.9 12.4a5.9 3.15 0 0 0 11.8 0a5.9 3.15 0 0 0 -11.8 0zM6.65 12.8a1.75 1.15 0 0 1 3.5 0a1.75 1.15 0 0 1 -3.5 0zM10.35 11.9a1.45 1 0 0 1 2.9 0a1.45 1 0 0 1 -2.9 0zM22.7 2.84L11.63 7.16A.6 .6 0 0 1 11.17 6.04L22.1 1.36A.8 .8 0 0 1 22.7 2.84zM22.92 6.87L16.56 8.48A.6 .6 0 0 1 16.24 7.32L22.48 5.33A.8 .8 0 0 1 22.92 6.87z',
  taco: 'M3.8 17.4A8.2 8.2 0 0 1 20.2 17.4A1 1 0 0 1 19.2 18.4H4.8A1 1 0 0 1 3.8 17.4zM7.7 14.9a.9 .9 0 0 0 1.8 0a.9 .9 0 0 0 -1.8 0zM11.5 12.9a.9 .9 0 0 0 1.8 0a.9 .9 0 0 0 -1.8 0zM14.1 15.7a.9 .9 0 0 0 1.8 0a.9 .9 0 0 0 -1.8 0zM2.6 17.4H1.7A2.52 2.52 0 0 1 2.72 12.93A2.52 2.52 0 0 1 5.58 9.35A2.52 2.52 0 0 1 9.71 7.36A2.52 2.52 0 0 1 14.29 7.36A2.52 2.52 0 0 1 18.42 9.35A2.52 2.52 0 0 1 21.28 12.93A2.52 2.52 0 0 1 22.3 17.4H21.4A9.4 9.4 0 0 0 2.6 17.4z',
  yoga: 'M9.5 4.1a2.5 2.5 0 0 1 5 0a2.5 2.5 0 0 1 -5 0zM9.5 7.6h5c.7 0 1.2.4 1.3 1.1l-1.3 8.5h-5L8.2 8.7c.1-.7.6-1.1 1.3-1.1zM10.06 9.3L6.8 13.68A.85 .85 0 0 1 5.4 12.72L8.34 8.1A1.05 1.05 0 0 1 10.06 9.3zM6.72 13.78L4.15 16.41A.75 .75 0 0 1 3.05 15.39L5.48 12.62A.85 .85 0 0 1 6.72 13.78zM15.66 8.1L18.6 12.72A.85 .85 0 0 1 17.2 13.68L13.94 9.3A1.05 1.05 0 0 1 15.66 8.1zM18.52 12.62L20.95 15.39A.75 .75 0 0 1 19.85 16.41L17.28 13.78A.85 .85 0 0 1 18.52 12.62zM4.3 17.57L13.6 18.97A1.35 1.35 0 0 1 13.2 21.63L3.9 20.23A1.35 1.35 0 0 1 4.3 17.57zM20.1 20.23L10.8 21.63A1.35 1.35 0 0 1 10.4 18.97L19.7 17.57A1.35 1.35 0 0 1 20.1 20.23zM9.5 16h5l2.2 3.6h-9.4z',
};

const [folder] = process.argv.slice(2);
if (!folder) throw new Error('say which folder @mdi/svg is installed in');
const paths = Object.entries(FILES).map(([name, file]) => {
  const svg = readFileSync(join(folder, 'node_modules/@mdi/svg/svg', `${file}.svg`), 'utf8');
  const match = /^<svg [^>]*viewBox="0 0 24 24"><path d="([\d\sA-Za-z.,-]+)" \/><\/svg>/.exec(
    svg.trim(),
  );
  if (!match) throw new Error(`${file} is not one path of 24 by 24`);
  return [name, match[1]];
});
const table = Object.fromEntries(
  [...paths, ...Object.entries(DRAWN)].sort(([a], [b]) => (a < b ? -1 : 1)),
);
const text = `// Made by tools/generate/icons.mjs.

/** One filled path on 24 by 24 for each stamp icon; Material Design Icons, see NOTICE. */
// prettier-ignore
export const STAMP_ICON_PATHS = ${JSON.stringify(table, null, 2)
  .replaceAll('"', "'")
  .replace(/^(\s+)'(\w+)':/gm, '$1$2:')} as const;
`;
writeFileSync(TABLE, text);
