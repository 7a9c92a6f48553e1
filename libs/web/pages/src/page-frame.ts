import type { Role } from '#identity/roles.js';
import type { NavigationLink } from './navigation.js';

/** Holds what every view may use in addition to its own data: `it.page`. */
export type PageFrame = {
  /** The prefix of every path in a link or form, where the service shares its host with others. */
  root: string;
  /** A BCP 47 tag. */
  lang: string;
  /** The value of the hidden field `_csrf`; empty on pages without a session. */
  csrf: string;
  /** Null on pages without a session. */
  user: { name: string; email: string } | null;
  /** Null outside the pages of a store. */
  store: { id: number; name: string; role: Role } | null;
  /** The pages of the store that the user may open. */
  links: NavigationLink[];
};

/** Creates a frame without session and store. */
export function createPlainFrame(root: string, lang: string): PageFrame {
  return { root, lang, csrf: '', user: null, store: null, links: [] };
}
