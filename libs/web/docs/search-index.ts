import type { Guide, Menu } from './guides.js';
import type { Operation, OperationGroup } from './operations.js';
import type { SettingGroup } from './settings-list.js';
import { findSynonyms } from './search-synonyms.js';

export type SearchEntry = {
  /** The name of the page or the operation. */
  title: string;
  /** The text next to the title. */
  about: string;
  /** The path from the root of the service. */
  path: string;
  /** Parameters, fields and other names of it. A word here counts for more than in the text. */
  names: string;
  /** Further text to search. */
  text: string;
  kind: 'guide' | 'part' | 'operation' | 'error' | 'file' | 'rule' | 'setting';
};

type DocumentedError = { code: string; status: number; meaning: string; advice: string };

/** What is searched besides the guides. */
export type SearchSources = {
  guides: readonly Guide[];
  menu: Menu;
  groups: readonly OperationGroup[];
  errors: readonly DocumentedError[];
  settings: readonly SettingGroup[];
  files: readonly { title: string; about: string; path: string }[];
};

/**
 * Indexes each section of each guide, each operation with its parameters and fields, each error code, each
 * setting, each rule and each file. Events are among the operations.
 */
export function createSearchIndex(sources: SearchSources): SearchEntry[] {
  const { guides, menu, groups, errors, settings, files } = sources;
  const names = new Map(
    menu.flatMap(({ links }) => links.map(({ path, name }) => [path, name] as const)),
  );
  const entries = [
    ...groups.flatMap(({ name, operations }) =>
      operations.map((operation) => toOperationEntry(operation, name)),
    ),
    ...guides.flatMap((guide) => toGuideEntries(guide, names.get(guide.path))),
    ...errors.map(toErrorEntry),
    ...settings.flatMap(toSettingEntries),
    ...files.map((file): SearchEntry => ({ ...file, names: '', text: '', kind: 'file' })),
    ...guides.flatMap(toRuleEntries),
  ];
  return entries.map((entry) => addSynonyms(entry));
}

/** @param name in the menu, which tells guides apart better than some titles */
function toGuideEntries(
  { title, path, sections, rules }: Guide,
  name: string = title,
): SearchEntry[] {
  return sections.map(({ id, heading, text }) => ({
    title: id === null ? name : heading,
    about: id === null ? 'Guide' : name,
    path: id === null ? path : `${path}#${id}`,
    names: '',
    // Each rule is an entry of its own.
    text: rules.length > 0 ? '' : text,
    kind: id === null ? 'guide' : rules.length > 0 ? 'rule' : 'part',
  }));
}

function toRuleEntries({ path, rules }: Guide): SearchEntry[] {
  return rules.map(({ id, heading, text }) => ({
    title: id,
    about: text,
    path: `${path}#${id}`,
    names: heading,
    text: '',
    kind: 'rule',
  }));
}

function toOperationEntry(operation: Operation, tag: string): SearchEntry {
  const { id, anchor, method, path, isEvent, summary, description, parameters, body, success } =
    operation;
  const names = [...parameters, ...(body?.fields ?? [])].map(({ name }) => name);
  const fields = (success.body?.fields ?? []).map(({ name }) => name);
  return {
    title: isEvent ? path : summary,
    about: isEvent ? `Event: ${summary}` : `${method} ${path}`,
    path: `/docs/reference#${anchor}`,
    names: listWords([id, ...names]),
    text: `${tag} ${description} ${listWords(fields)}`,
    kind: 'operation',
  };
}

/** The last parts of paths such as `customer.first_name`, each once. */
function listWords(names: readonly string[]): string {
  return [...new Set(names.map((name) => name.split('.').at(-1) ?? name))].join(' ');
}

function toErrorEntry({ code, status, meaning, advice }: DocumentedError): SearchEntry {
  return {
    title: code,
    about: `Error ${status}: ${meaning}`,
    path: `/docs/errors#${code}`,
    names: `error ${status}`,
    text: advice,
    kind: 'error',
  };
}

function toSettingEntries({ description, settings }: SettingGroup): SearchEntry[] {
  return settings.map(({ name }) => ({
    title: name,
    about: description,
    path: `/docs/settings#${name}`,
    names: name.replaceAll('_', ' '),
    text: '',
    kind: 'setting',
  }));
}

function addSynonyms(entry: SearchEntry): SearchEntry {
  if (entry.kind === 'rule') return entry;
  const synonyms = findSynonyms(`${entry.title} ${entry.about}`);
  return synonyms === '' ? entry : { ...entry, names: `${entry.names} ${synonyms}`.trim() };
}
