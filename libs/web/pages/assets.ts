import { createHash } from 'node:crypto';
import { readTextFile } from '#platform/kernel/templates.js';

/** Describes a file that pages load. Its path changes with its text, so that browsers may cache it for ever. */
export type Asset = { name: string; path: string; type: string; text: string };

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

const assets = new Map<string, Asset>();

/**
 * Loads a file that pages use, and registers it.
 * @param from import.meta.url of the caller
 * @param path from there, such as `./assets/pin.js`; its file name must be unique in the service
 */
export function loadAsset(from: string, path: string): Asset {
  const [, name = '', extension = ''] = /([a-z-]+)[.]([a-z]+)$/.exec(path) ?? [];
  if (!Object.hasOwn(TYPES, extension)) throw new Error(`${path} has an unsupported file type`);
  return registerAsset(name, extension as keyof typeof TYPES, readTextFile(from, path));
}

/** Registers a file whose text the code composes. Its name must be unique in the service. */
export function registerAsset(name: string, extension: keyof typeof TYPES, text: string): Asset {
  if (assets.has(`${name}.${extension}`))
    throw new Error(`two assets have the name ${name}.${extension}`);
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 12);
  const asset = {
    name: `${name}.${extension}`,
    path: `/assets/${name}-${hash}.${extension}`,
    type: TYPES[extension],
    text,
  };
  assets.set(asset.name, asset);
  return asset;
}

/**
 * Finds a file by its path. During a rolling update a page of one version may ask a process of the other: it gets the
 * file that this process has, with `isCurrent` false, which must not be cached.
 */
export function findAsset(file: string): { asset: Asset; isCurrent: boolean } | undefined {
  const [, name, ending] = /^([a-z-]+)-[A-Za-z0-9_-]{12}[.]([a-z]+)$/.exec(file) ?? [];
  const asset = assets.get(`${name}.${ending}`);
  return asset && { asset, isCurrent: asset.path === `/assets/${file}` };
}

export const STYLE = loadAsset(import.meta.url, './assets/inkpad.css');
export const ICON = loadAsset(import.meta.url, './assets/icon.svg');
export const ACTIONS = loadAsset(import.meta.url, './assets/actions.js');
/** For every page that somebody without a session sees on the way to the console or the counter. */
export const FORGET_PERSON = loadAsset(import.meta.url, './assets/forget-person.js');
/** For service workers, whose scripts are on paths of their own and no assets. */
export const NETWORK_IN_TIME = readTextFile(import.meta.url, './assets/network-in-time.js');
