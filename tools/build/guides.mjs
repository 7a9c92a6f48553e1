import path from 'node:path';
import hljs from 'highlight.js';
import { Marked } from 'marked';
import { addCompiledSamples } from './compiled-samples.mjs';

/**
 * Renders guides, which read as well in the repository, when the project is built. The service only puts them into its pages.
 *
 * In the HTML `%ROOT%` stands in front of paths of the service, and `%ADDRESS%` where a guide shows the address of one. In
 * the Markdown every address begins with `%ADDRESS%`.
 */

const FOLDER = 'docs/guides';
/** Documents that are pages too, by their place in the repository. */
const PLACES = {
  [`${FOLDER}/README.md`]: '/docs',
  'docs/webhooks.md': '/docs/webhooks-in-detail',
  'docs/api.md': '/docs/rules',
  'docs/admin-api.md': '/docs/admin-rules',
  'CHANGELOG.md': '/docs/changelog',
  'clients/typescript/README.md': '/docs/clients/typescript',
  'clients/python/README.md': '/docs/clients/python',
  'openapi.json': '/docs/reference',
  'openapi-admin.json': '/docs/admin-reference',
};
/** Files that pages link to, and the service offers for download. */
const RECEIVERS = 'docs/receivers';
const PICTURES = 'docs/pictures';
/** In the README of a client, what follows is for those who change it. */
const FOR_CONTRIBUTORS = /^## Working on it$[^]*/m;
/** The id with which a rule of docs/api.md begins. */
const RULE = /^[A-Z]+-\d{2,}$/;
/** The output of npm start as guides show it. */
const ADDRESS = 'http://localhost:3000';

const LANGUAGES = { sh: 'bash', js: 'javascript', ts: 'typescript' };
const LABELS = {
  sh: 'Shell',
  ts: 'TypeScript',
  json: 'Response',
  http: 'Response headers',
  js: 'JavaScript',
  python: 'Python',
  php: 'PHP',
  ruby: 'Ruby',
  go: 'Go',
  perl: 'Perl',
};
const NAMES = { background: 'Another shell', listener: 'Another shell', arrives: 'What arrives' };

/** The languages of samples. Those that stand one after the other say the same, and a reader chooses one. */
const CHOICES = {
  sh: 'curl',
  ts: 'TypeScript',
  js: 'Node.js',
  python: 'Python',
  csharp: 'C#',
  java: 'Java',
  go: 'Go',
};

/** @param {string} file from the root of the project */
export function renderGuide(file, source) {
  const text = addCompiledSamples(file, source.replace(FOR_CONTRIBUTORS, ''));
  const headings = [];
  const marked = new Marked({
    renderer: createRenderer(file, headings),
    extensions: [{ name: 'samples', renderer: renderSamples }],
  });
  const tokens = marked.lexer(text);
  const html = marked.parser(groupSamples(tokens));
  return {
    path: getPath(file),
    title: getTitle(tokens, file),
    summary: getPlainText(tokens.find(({ type }) => type === 'paragraph')),
    html,
    markdown: renderMarkdown(text, file),
    headings,
    sections: listSections(tokens),
    rules: listRules(tokens),
    menu: file === `${FOLDER}/README.md` ? listMenu(tokens) : [],
  };
}

function getPath(file) {
  if (isFile(file)) return `/${file}`;
  return PLACES[file] ?? (file.startsWith(FOLDER) ? `/docs/${path.basename(file, '.md')}` : null);
}

/** Whether a path is that of a file that is no page. */
function isFile(place) {
  return [RECEIVERS, PICTURES].some((folder) => place.replace(/^\//, '').startsWith(`${folder}/`));
}

function createRenderer(file, headings) {
  return {
    heading({ tokens, depth }) {
      const text = this.parser.parseInline(tokens);
      const id = createSlug(getPlainText({ tokens }));
      if (depth === 1) return `<h1>${text}</h1>\n`;
      headings.push({ id, text: getPlainText({ tokens }), depth });
      return `<h${depth} id="${id}"><a class="anchor" href="#${id}">${text}</a></h${depth}>\n`;
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      const target = resolveTarget(href, file);
      if (target === null) return text;
      const saved = target.includes(`/${RECEIVERS}/`) ? ' download' : '';
      return `<a href="${escapeHtml(target)}"${saved}>${text}</a>`;
    },
    image({ href, text }) {
      const source = resolveTarget(href, file);
      const dark = source.replace('-light.', '-dark.');
      const image = `<img class="screen" src="${source}" alt="${escapeHtml(text)}" width="585" height="1140" loading="lazy">`;
      if (dark === source) return image;
      return `<picture><source media="(prefers-color-scheme: dark)" srcset="${dark}">${image}</picture>`;
    },
    listitem(item) {
      const id = findRule(item);
      if (id === undefined) return false;
      const [, ...rest] = item.tokens[0].tokens;
      const text = this.parser.parseInline(rest) + this.parser.parse(item.tokens.slice(1));
      return `<li id="${id}"><a class="anchor" href="#${id}"><strong>${id}</strong></a>${text}</li>\n`;
    },
    codespan({ text }) {
      return `<code${text.includes(' ') ? ' class="words"' : ''}>${escapeHtml(text)}</code>`;
    },
    code({ text, lang = '' }) {
      return renderCode(text, lang);
    },
    table({ header, rows }) {
      const cells = (row, tag) =>
        row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('');
      const named = header.some(({ text }) => text !== '');
      const head = named ? `<thead><tr>${cells(header, 'th')}</tr></thead>` : '';
      const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('');
      return `<div class="scroll" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
    },
  };
}

/** Resolves a link. One to a document that is no page of the service is no link there. */
function resolveTarget(href, from) {
  if (/^(https?:|#)/.test(href)) return href;
  const [file, hash] = href.split('#');
  const target = getPath(path.posix.normalize(path.posix.join(path.posix.dirname(from), file)));
  return target === null ? null : `%ROOT%${target}${hash === undefined ? '' : `#${hash}`}`;
}

/** Renders the text as Markdown whose links work outside of the repository: from one document to the next. */
function renderMarkdown(text, file) {
  return text
    .split(/(^```[^]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : renderLinks(part, file)))
    .join('')
    .replaceAll(ADDRESS, '%ADDRESS%');
}

function renderLinks(text, file) {
  return text.replaceAll(/\[([^\]]*)\]\(([^)\s]+)\)/g, (link, label, href) => {
    const target = resolveTarget(href, file);
    if (target === null) return label;
    if (!target.startsWith('%ROOT%')) return link;
    const [place, hash] = target.replace('%ROOT%', '').split('#');
    const isPage = !isFile(place);
    return `[${label}](%ADDRESS%${place}${isPage ? '.md' : ''}${hash === undefined ? '' : `#${hash}`})`;
  });
}

/** Puts samples that say the same into one token. */
function groupSamples(tokens) {
  const grouped = [];
  for (const token of tokens) {
    const last = grouped.at(-1);
    const choice = token.type === 'code' ? findChoice(token.lang ?? '') : undefined;
    if (choice === undefined) {
      // Blank lines between two samples.
      if (token.type !== 'space' || last?.type !== 'samples') grouped.push(token);
    } else if (last?.type === 'samples' && !last.samples.some((item) => item.choice === choice)) {
      last.samples.push({ ...token, choice });
    } else {
      grouped.push({ type: 'samples', raw: '', samples: [{ ...token, choice }] });
    }
  }
  return grouped;
}

/** @returns {string | undefined} which of CHOICES it is; commands that start a program say so */
function findChoice(info) {
  const [language, , choice = language] = info.split(' ');
  return Object.hasOwn(CHOICES, choice) ? choice : undefined;
}

function renderSamples({ samples }) {
  const [{ text, lang }] = samples;
  if (samples.length === 1) return renderCode(text, lang);
  const drawn = samples.map((sample) => renderCode(sample.text, sample.lang, sample.choice));
  return `<div class="samples">\n${drawn.join('')}</div>\n`;
}

/**
 * @param {string} info the language, and the name of a file or what it is
 * @param {string} [choice] where it is one of several samples
 */
function renderCode(text, info, choice) {
  const [language, name] = info.split(' ');
  const highlighter = LANGUAGES[language] ?? language;
  const code = hljs.getLanguage(highlighter)
    ? hljs.highlight(text, { language: highlighter }).value
    : escapeHtml(text);
  const label = NAMES[name] ?? name ?? (choice && CHOICES[choice]) ?? LABELS[language] ?? '';
  const html = code.replaceAll(ADDRESS, '<span class="address">%ADDRESS%</span>');
  return `<figure class="code ${language}"${choice ? renderSampleAttributes(choice, label) : ''}><figcaption>${escapeHtml(label)}</figcaption><pre tabindex="0"><code>${html}</code></pre></figure>\n`;
}

/** Renders the attributes for the script that shows one of several samples. */
function renderSampleAttributes(choice, label) {
  const title = CHOICES[choice];
  // As samples of the reference have it; who reads TypeScript reads JavaScript.
  const language = { sh: 'shell', ts: 'typescript', js: 'typescript' }[choice] ?? choice;
  return ` data-language="${language}" data-title="${title}"${label === title ? ' data-plain' : ''}`;
}

function getTitle(tokens, file) {
  const title = tokens.find(({ type, depth }) => type === 'heading' && depth === 1);
  if (!title) throw new Error(`${file} has no title`);
  return getPlainText(title);
}

/** Lists the links of the first page, by their headings. */
function listMenu(tokens) {
  const groups = [];
  for (const token of tokens) {
    if (token.type === 'heading' && token.depth === 2)
      groups.push({ title: token.text, links: [] });
    if (token.type !== 'list') continue;
    for (const item of token.items) {
      const link = item.tokens[0].tokens.find(({ type }) => type === 'link');
      const target = path.posix.normalize(path.posix.join(FOLDER, link.href));
      const name = getPlainText(link);
      const about = getPlainText(item).replace(name, '').trim();
      groups.at(-1).links.push({ path: getPath(target), name, about });
    }
  }
  return groups;
}

/** Collects the searchable text below each heading. */
function listSections(tokens) {
  const sections = [];
  for (const token of tokens) {
    if (token.type === 'heading') {
      const text = getPlainText(token);
      sections.push({ id: token.depth === 1 ? null : createSlug(text), heading: text, text: '' });
    } else if (sections.length > 0 && token.type !== 'html') {
      sections.at(-1).text += ` ${getPlainText(token)}`;
    }
  }
  return sections.map((section) => ({ ...section, text: section.text.trim() }));
}

/** Lists the rules of docs/api.md, with the heading that each is below. */
function listRules(tokens) {
  let heading = '';
  return tokens.flatMap((token) => {
    if (token.type === 'heading') heading = getPlainText(token);
    if (token.type !== 'list') return [];
    return token.items.flatMap((item) => {
      const id = findRule(item);
      if (id === undefined) return [];
      return [{ id, heading, text: getPlainText(item).slice(id.length).trim() }];
    });
  });
}

/** @returns {string | undefined} the id, if the item is a rule */
function findRule({ tokens }) {
  const first = tokens[0]?.tokens?.[0];
  return first?.type === 'strong' && RULE.test(first.text) ? first.text : undefined;
}

/** Gets the text of a token without its marks. */
function getPlainText(token) {
  if (token === undefined) return '';
  const { type, tokens, items, header, rows, text = '' } = token;
  const all = (list) => list.map(getPlainText).join(' ');
  if (type === 'table') return [header, ...rows].map(all).join(' ');
  if (items) return all(items);
  if (tokens) return tokens.map(getPlainText).join('').replaceAll(/\s+/g, ' ');
  return unescapeHtml(text);
}

function unescapeHtml(text) {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}

/** Creates a slug as GitHub does, so that links into a page lead to the same place in both. */
function createSlug(text) {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

function escapeHtml(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
