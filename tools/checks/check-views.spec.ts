import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';

it('names the line of a text that does not exist, or lacks its arguments', () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'views-')), 'wrong.eta');
  writeFileSync(
    file,
    `<% const t = it.page.t.stamps; %>
<p><%= t.label %> <%= t.count({ count: it.count }) %></p>
<% if (it.isOpen) { %><%= t.title %><% } else { %><%= t.count({ number: 1 }) %><% } %>
<%~ part('field', { label: t.label, hint: t.added }) %>
<p><%= t.count %></p>
<p><%= it.t.label %></p>
`,
  );
  const { stderr } = spawnSync(process.execPath, ['tools/checks/check-views.mjs', file], {
    encoding: 'utf8',
  });
  const lines = stderr.split('\n').filter((line) => line !== '');
  expect(lines.map((line) => line.split(': ', 1)[0])).toEqual([
    'libs/web/wrong.eta:3',
    'libs/web/wrong.eta:3',
    'libs/web/wrong.eta:4',
    'libs/web/wrong.eta:5',
    'libs/web/wrong.eta:6',
  ]);
});
