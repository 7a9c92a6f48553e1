import { createId } from '#platform/kernel/randomness.js';
import { loadPart, loadTemplate } from '#platform/kernel/templates.js';
import type { Role } from '#identity/roles.js';
import { getTranslations, type Translations } from '#translations/translations.js';
import { ICONS } from './icons.js';
import type { NavigationLink } from './navigation.js';
import { PageParts } from './page-parts.js';

/** Holds what every view may use in addition to its own data: `it.page`. */
export type PageFrame = {
  /** The prefix of every path in a link or form, where the service shares its host with others. */
  root: string;
  /** A BCP 47 tag. */
  lang: string;
  /** The texts in the language. */
  t: Translations;
  /** The value of the hidden field `_csrf`; empty on pages without a session. */
  csrf: string;
  /** The value of the hidden field `form_key`, by which a form that is sent twice is recognized. */
  formKey: string;
  /** Whether the part `password-again` shows its field. */
  asksPassword: boolean;
  /** What the page says above everything else, such as that a form was kept; empty: nothing. */
  notice: string;
  /** Null on pages without a session. */
  user: { name: string; email: string } | null;
  /** Null outside the pages of a store. */
  store: { id: number; name: string; role: Role } | null;
  /** The path of the icons, with the prefix. */
  icons: string;
  /** The pages of the store that the user may open. */
  links: NavigationLink[];
  /** What the parts of the page add to it. */
  parts: PageParts;
};

/** Creates a frame without session and store. */
export function createPlainFrame(root: string, lang: string): PageFrame {
  const { t } = getTranslations(lang);
  return {
    root,
    lang,
    t,
    csrf: '',
    formKey: createId(),
    asksPassword: true,
    notice: '',
    user: null,
    store: null,
    icons: root + ICONS.path,
    links: [],
    parts: new PageParts(),
  };
}

/** Renders the inside of a page. */
export type View<D extends object> = (data: D, page: PageFrame) => string;

const FORM_PARTS = ['csrf', 'field', 'choice', 'check', 'errors', 'field-errors', 'password-again'];
const PAGE_PARTS = [
  'heading',
  'banner',
  'empty',
  'copy',
  'share',
  'support',
  'save-bar',
  'address',
];
const MENU_PARTS = ['menu', 'breadcrumb', 'tabs', 'chips', 'paging', 'icon'];

for (const name of [...FORM_PARTS, ...PAGE_PARTS, ...MENU_PARTS])
  loadPart(name, import.meta.url, `./parts/${name}.eta`);

/** Loads a view. @param path from the caller's import.meta.url, such as `./views/sign-in.eta` */
export function loadView<D extends object = Record<string, never>>(
  from: string,
  path: string,
): View<D> {
  const render = loadTemplate<D & { page: PageFrame }>(from, path);
  return (data, page) => render({ ...data, page });
}
