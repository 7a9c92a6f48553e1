import { readFileSync } from 'node:fs';
import { endpoints, tags } from '#platform/http/endpoint.js';
import { isAllowed, OPERATIONS, ROLES, type Operation } from '#identity/roles.js';

export const ROLES_PAGE = 'docs/roles.md';

/** The columns of the table, by the lowest role that may call an operation. */
const COLUMNS = { staff: 'Everybody', manager: 'Owner and manager', owner: 'Only the owner' };

/** Renders docs/roles.md with the table of operations by tag; the text before it stays. */
export function renderRolesPage(): string {
  const [text = ''] = readFileSync(ROLES_PAGE, 'utf8').split('\n| Operations ');
  const names = [...tags.values()]
    .sort((one, other) => one.order - other.order)
    .map(({ name }) => name);
  const lines = [...names, undefined].flatMap((tag) => {
    const operations = OPERATIONS.filter((operation) => findTag(operation) === tag);
    // Tokens of the admin API have no role.
    if (operations.length === 0) return [];
    const cells = Object.keys(COLUMNS).map((role) => renderOperations(operations, role));
    return [[tag ?? 'The console', ...cells]];
  });
  const head = ['Operations of', ...Object.values(COLUMNS)];
  const table = [head, head.map(() => '---'), ...lines];
  return `${text}\n${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

/** Finds the tag of an operation, or of the one that a right belongs to; undefined for those of the console. */
function findTag(operation: Operation): string | undefined {
  const [name = ''] = operation.split('.');
  return endpoints.get(name)?.tag;
}

/** Renders the operations for which a role is the lowest that may call them. */
function renderOperations(operations: Operation[], role: string): string {
  return operations
    .filter((operation) => ROLES.findLast((each) => isAllowed(each, operation)) === role)
    .map((operation) => `\`${operation}\``)
    .join(', ');
}
