import type { Translations } from '#translations/translations.js';

const TABS = {
  announcements: '/announcements',
  rules: '/rules',
  settings: '/settings',
  links: '/links',
};
export type MessageTab = keyof typeof TABS;

/** The data of the part `tabs`. */
export type Tabs = {
  label: string;
  tabs: { path: string; text: string; isCurrent: boolean }[];
};

/** Builds the path of the pages about messages, from the root of the service. */
export function buildMessagesPath({ id }: { id: number }): string {
  return `/app/stores/${id}/messages`;
}

/** Creates the links between the pages about messages. */
export function createMessageTabs(
  store: { id: number },
  current: MessageTab,
  { messagePages: { tabs: t } }: Translations,
): Tabs {
  const names = Object.keys(TABS) as MessageTab[];
  return {
    label: t.label,
    tabs: names.map((name) => ({
      path: `${buildMessagesPath(store)}${TABS[name]}`,
      text: t[name],
      isCurrent: name === current,
    })),
  };
}
