import { createHash } from 'node:crypto';
import { textOf } from './view.js';

/** A file that pages load. Its path changes with its text, so that browsers may keep it for ever. */
export type Asset = { name: string; path: string; type: string; text: string };

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

const known = new Map<string, Asset>();

/**
 * @param from import.meta.url of the caller
 * @param path from there, such as `./assets/pin.js`; its last part may be used once in the service
 */
export function assetOf(from: string, path: string): Asset {
  const [, name = '', ending = ''] = /([a-z-]+)[.]([a-z]+)$/.exec(path) ?? [];
  const type = TYPES[ending as keyof typeof TYPES];
  if (type === undefined) throw new Error(`${path} is no kind of file that pages load`);
  if (known.has(`${name}.${ending}`)) throw new Error(`two assets are called ${name}.${ending}`);
  const text = textOf(from, path);
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 12);
  const asset = {
    name: `${name}.${ending}`,
    path: `/assets/${name}-${hash}.${ending}`,
    type,
    text,
  };
  known.set(asset.name, asset);
  return asset;
}

/**
 * While a new version is rolled out, a page of one version may ask a process of the other: that gets what there is,
 * which is not to be kept.
 */
export function findAsset(file: string): { asset: Asset; current: boolean } | undefined {
  const [, name, ending] = /^([a-z-]+)-[A-Za-z0-9_-]{12}[.]([a-z]+)$/.exec(file) ?? [];
  const asset = known.get(`${name}.${ending}`);
  return asset && { asset, current: asset.path === `/assets/${file}` };
}

export const STYLE = assetOf(import.meta.url, './assets/inkpad.css');
export const ICON = assetOf(import.meta.url, './assets/icon.svg');
