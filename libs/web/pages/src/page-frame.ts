import type { Role } from '#identity/roles.js';
import type { NavigationLink } from './navigation.js';

/** What every view may use beside its own data: `it.page`. */
export type PageFrame = {
  /** In front of every path in a link or form, where the service has only a part of its host. */
  root: string;
  /** A BCP 47 tag. */
  lang: string;
  /** For the hidden field `_csrf`; empty on pages without a session. */
  csrf: string;
  /** Null on pages without a session. */
  user: { name: string; email: string } | null;
  /** On pages of a store. */
  store: { id: number; name: string; role: Role } | null;
  /** Of the store, as far as the user may open them. */
  links: NavigationLink[];
};

/** A frame without session and store. */
export function createPlainFrame(root: string, lang: string): PageFrame {
  return { root, lang, csrf: '', user: null, store: null, links: [] };
}
