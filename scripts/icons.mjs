// Makes the table of stamp icons from Material Design Icons (Apache-2.0, see NOTICE). Run by hand when an icon is added:
//   npm install --no-save --prefix FOLDER @mdi/svg@7.4.47 && node scripts/icons.mjs FOLDER
// The package has 7,447 files, too many for every clone to install.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const TABLE = 'libs/outbound/card-images/src/stamp-icons.ts';

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
  bread: 'bread-slice',
  pizza: 'pizza',
  burger: 'hamburger',
  taco: 'taco',
  scissors: 'content-cut',
  razor: 'razor-double-edge',
  lipstick: 'lipstick',
  spa: 'spa',
  dumbbell: 'dumbbell',
  yoga: 'yoga',
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

/** Drawn for Inkpad, because the set has none. Holes run the other way round than what they are in. */
const DRAWN = {
  bubble_tea:
    'M13.2 1h2.1l-.8 3.4A7 7 0 0 1 19 9H5a7 7 0 0 1 7.5-4.9zM5.3 10h13.4l-1.5 11.1c-.1.5-.5.9-1 .9H7.800c-.5 0-.9-.4-1-.9zM8 19.300a1.200 1.200 0 1 0 2.400 0a1.200 1.200 0 1 0-2.400 0zM11 17.200a1.200 1.200 0 1 0 2.400 0a1.200 1.200 0 1 0-2.400 0zM13.600 19.500a1.200 1.200 0 1 0 2.400 0a1.200 1.200 0 1 0-2.400 0z',
  nail_polish:
    'M9.700 2h4.600l.7 8H9zM8 11h8c1.700 1 2.500 2.600 2.500 4.500v4c0 1.400-1.100 2.500-2.500 2.500H8c-1.400 0-2.500-1.100-2.500-2.500v-4C5.500 13.600 6.300 12 8 11zM7.600 15.200v3.600c0 .5.300.8.800.8s.8-.300.8-.8v-3.600c0-.5-.300-.8-.8-.8s-.8.300-.8.8z',
  salad:
    'M2 13h20c0 3.600-2.200 6.700-5.300 8.100V22H7.300v-.9C4.200 19.700 2 16.600 2 13zM5 12a3.600 3.600 0 0 1 1.900-5.900A4.600 4.600 0 0 1 14.800 4.200a4.200 4.200 0 0 1 5.100 5.300c-.2.900-.6 1.700-1.200 2.500h-2.500l1.600-4-1.200-.5L14.800 12h-3L10 7.700l-1.200.500L10.400 12z',
  sushi:
    'M3 11C3 7 7 5 12 5s9 2 9 6c0 1-.7 1.600-1.600 1.400C17 11.800 14.500 11.500 12 11.500s-5 .3-7.400.9C3.700 12.600 3 12 3 11zM7.200 6.600L8.400 10.700L9.600 10.500L8.400 6.200zM11.400 5.900L12.200 10.300L13.500 10.300L12.700 5.900zM15.600 6.200L16 10.500L17.200 10.700L16.900 6.700zM4 14.200c2.500-.8 5.200-1.200 8-1.200s5.500.4 8 1.200c.6 1.200.6 2.500 0 3.600-.4.8-1.200 1.200-2 1.200H6c-.8 0-1.600-.4-2-1.200-.6-1.100-.6-2.400 0-3.600z',
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
const text = `// Made by scripts/icons.mjs.

/** One filled path on 24 by 24 for each stamp icon; Material Design Icons, see NOTICE. */
// prettier-ignore
export const STAMP_ICON_PATHS = ${JSON.stringify(table, null, 2)
  .replaceAll('"', "'")
  .replace(/^(\s+)'(\w+)':/gm, '$1$2:')} as const;
`;
writeFileSync(TABLE, text);
