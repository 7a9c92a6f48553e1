import { Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { describeFileError } from '#platform/kernel/file-errors.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { WalletBadge } from './card-view.js';

type Vendor = 'apple' | 'google';
type BadgeFile = { bytes: Buffer; type: string };

/** `apple-de.svg`, and `apple-de-dark.svg` for dark mode. */
const FILE = /^(?<name>(?:apple|google)-[a-z]{2,3}(?:-dark)?)[.](?<extension>svg|png)$/;
const TYPES = { svg: 'image/svg+xml', png: 'image/png' } as const;
const PNG_START = Buffer.from('89504e470d0a1a0a', 'hex');
const MAX_BYTES = 200_000;

/**
 * Holds the official buttons of the wallet vendors, from a folder of the operator: their licences do not let us ship
 * them. A language without a file has that of English, and a vendor without files a plain button.
 */
@Injectable()
export class WalletBadges {
  /** By the name without its ending. */
  private readonly files: ReadonlyMap<string, BadgeFile & { path: string }>;

  constructor({ walletButtonsFolder: folder }: Config) {
    this.files = new Map(folder === null ? [] : loadFolder(folder));
  }

  /** Finds the button in a language. @param lang a BCP 47 tag */
  find(vendor: Vendor, lang: string): WalletBadge | null {
    const { language } = new Intl.Locale(lang);
    for (const name of [`${vendor}-${language}`, `${vendor}-en`]) {
      const light = this.files.get(name);
      if (!light) continue;
      return { light: light.path, dark: this.files.get(`${name}-dark`)?.path ?? null };
    }
    return null;
  }

  /** Finds a file by the end of its path. */
  findFile(file: string): BadgeFile | undefined {
    return [...this.files.values()].find(({ path }) => path.endsWith(`/${file}`));
  }
}

function* loadFolder(folder: string): Iterable<[string, BadgeFile & { path: string }]> {
  for (const file of readOrFail(folder, () => readdirSync(folder).sort())) {
    const { name = '', extension = '' } = FILE.exec(file)?.groups ?? {};
    if (extension !== 'svg' && extension !== 'png') continue;
    const path = join(folder, file);
    const bytes = readOrFail(path, () => readPicture(path, extension));
    const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
    yield [
      name,
      { bytes, type: TYPES[extension], path: `/img/wallet-button/${name}.${hash}.${extension}` },
    ];
  }
}

function readPicture(path: string, extension: keyof typeof TYPES): Buffer {
  if (statSync(path).size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
  const bytes = readFileSync(path);
  const isPicture =
    extension === 'png' ? bytes.subarray(0, 8).equals(PNG_START) : bytes.includes('<svg');
  if (!isPicture) throw new Error(`it is no ${extension.toUpperCase()} picture`);
  return bytes;
}

/** @throws ConfigError */
function readOrFail<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const why = describeFileError(error) ?? getErrorMessage(error);
    throw new ConfigError(`WALLET_BUTTONS_DIR: ${path} cannot be used: ${why}`, { cause: error });
  }
}
