/** The rows of a keyboard from the top. A row without its first key begins with a space. */
type Rows = readonly string[];

const LETTERS = {
  qwerty: ['qwertyuiop', 'asdfghjkl', 'zxcvbnm'],
  qwertz: ['qwertzuiopü+', 'asdfghjklöä#', 'yxcvbnm,.-'],
  azerty: ['azertyuiop^$', 'qsdfghjklmù*', 'wxcvbn,;:!'],
} as const;

/** Keyboards of English, German, French and Spanish, also with Shift, and a pad of numbers. */
const KEYBOARDS: readonly Rows[] = [
  ['1234567890-=', 'qwertyuiop[]', "asdfghjkl;'", 'zxcvbnm,./'],
  ['!@#$%^&*()_+', ...LETTERS.qwerty],
  ['1234567890ß', ...LETTERS.qwertz],
  ['!"§$%&/()=?', ...LETTERS.qwertz],
  ['1234567890°+', ...LETTERS.azerty],
  ['&é"\'(-è_çà)=', ...LETTERS.azerty],
  ["1234567890'¡", 'qwertyuiop`+', 'asdfghjklñ´ç', 'zxcvbnm,.-'],
  ['!"·$%&/()=?¿', 'qwertyuiop^*', 'asdfghjklñ¨ç', 'zxcvbnm;:_'],
  ['789', '456', '123', '0'],
];

/** A shorter run is part of too many words. */
const MIN_RUN_LENGTH = 3;
/** Limits the letters, and all characters, besides the runs: a name, a year, a sign or two. */
const MAX_OTHER_LETTERS = 3;
const MAX_OTHERS = 8;

type Key = { row: number; column: number };

const KEYS = KEYBOARDS.map(
  (rows) =>
    new Map<string, Key>(
      rows.flatMap((keys, row) =>
        [...keys].map((character, column) => [character, { row, column }] as const),
      ),
    ),
);

/**
 * Tells whether a text is little else than neighbouring keys in straight lines: rows, columns and diagonals in either
 * direction, such as qwertz12345, 1qay2wsx3edc or poiuztrewq2026, and two of them in turns, such as qawsedrftg.
 * @param text in lower case
 */
export function isKeyboardWalk(text: string): boolean {
  // A key that is pressed several times is one step.
  const characters = [...text].filter((character, i, all) => character !== all[i - 1]);
  const [even, odd] = [0, 1].map((rest) => characters.filter((_, i) => i % 2 === rest));
  return KEYS.some(
    (keys) => isWalk(characters, keys) || (isWalk(even ?? [], keys) && isWalk(odd ?? [], keys)),
  );
}

function isWalk(characters: readonly string[], keys: ReadonlyMap<string, Key>): boolean {
  const others: string[] = [];
  for (let at = 0; at < characters.length;) {
    const length = measureRun(characters, at, keys);
    if (length < MIN_RUN_LENGTH) others.push(characters[at] ?? '');
    at += length < MIN_RUN_LENGTH ? 1 : length;
  }
  const letterCount = others.filter((character) => /\p{L}/u.test(character)).length;
  return (
    others.length * 2 <= characters.length &&
    others.length <= MAX_OTHERS &&
    letterCount <= MAX_OTHER_LETTERS
  );
}

/** Measures the straight line of neighbouring keys that begins at a character. */
function measureRun(
  characters: readonly string[],
  start: number,
  keys: ReadonlyMap<string, Key>,
): number {
  let direction: string | undefined;
  for (let at = start + 1; ; at += 1) {
    const step = findStep(keys.get(characters[at - 1] ?? ''), keys.get(characters[at] ?? ''));
    direction ??= step;
    if (step === undefined || step !== direction) return at - start;
  }
}

/** Finds the direction from a key to its neighbour. */
function findStep(from: Key | undefined, to: Key | undefined): string | undefined {
  if (!from || !to) return undefined;
  const [rows, columns] = [to.row - from.row, to.column - from.column];
  return Math.abs(rows) <= 1 && Math.abs(columns) <= 1 ? `${rows} ${columns}` : undefined;
}
