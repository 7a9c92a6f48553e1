import { getPath } from '#platform/http/path.js';
import { isAllowed } from '#identity/roles.js';
import type { ConsoleRequest } from './current-user.js';
import { getTranslations, type Translations } from '#translations/translations.js';
import { localizeRequest } from './localize.js';
import { listNavigationLinks } from './navigation.js';
import { createPlainFrame, type PageFrame } from './view.js';

/**
 * Creates the frame of a page of the console, with the store and the menu that the guard has found.
 * @param lang of a page in one language only; the default is that of the browser
 */
export function createConsoleFrame(
  root: string,
  request: ConsoleRequest,
  lang?: string,
): { frame: PageFrame; at: string } {
  const { signedIn, store } = request;
  const at = getPath(request.url).replace(/\/$/, '');
  const { t, locale } = lang === undefined ? localizeRequest(request) : getTranslations(lang);
  const mayDo = (operation: Parameters<typeof isAllowed>[1]) =>
    store !== undefined && isAllowed(store.role, operation);
  const frame = {
    ...createPlainFrame(root, locale),
    notice: describeKeptForm(request, t),
    ...(signedIn && {
      csrf: signedIn.csrfToken,
      asksPassword: signedIn.asksPassword,
      user: { name: signedIn.name, email: signedIn.email },
    }),
    ...(store && { store, links: listNavigationLinks(store.id, mayDo, at, t) }),
  };
  return { frame, at };
}

/** Says that the page shows a form again which was sent after its session had ended. */
export function describeKeptForm(
  { keptForm }: ConsoleRequest,
  { forms: { formKept, formKeptWithoutFile, formKeptWithoutSecret } }: Translations,
): string {
  if (!keptForm) return '';
  const sentences = [
    formKept,
    ...(keptForm.hadFile ? [formKeptWithoutFile] : []),
    ...(keptForm.hadSecret ? [formKeptWithoutSecret] : []),
  ];
  return sentences.join(' ');
}
