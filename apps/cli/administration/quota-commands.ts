import { InvalidArgumentError, type Command } from 'commander';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { QUOTA_NAMES, parseQuotaChanges, type QuotaChanges } from '#configuration/store-quotas.js';
import { Quotas, type Quota } from '#loyalty/accounts/quotas.service.js';
import { parsePositive, runCommand } from './command.js';
import { addExamples } from '../command-line.js';

/** Commands that show and change how much a store may have. */
export function addQuotaCommands(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('quotas')
      .argument('<store>', 'as store:list shows it', parsePositive)
      .description('shows how much a store may have, and how much of it is used'),
    'quotas 1',
  ).action((store: number) => {
    runCommand(async (_, app) => toQuotasJson(store, await app.get(Quotas).list(store)));
  });

  addExamples(
    program
      .command('quotas:set')
      .argument('<store>', 'as store:list shows it', parsePositive)
      .argument(
        '<quota=max...>',
        `one or more of ${QUOTA_NAMES.join(', ')}, with a number, or default for the usual one`,
        collectChanges,
      )
      .description('gives a store quotas of its own; existing records above one stay'),
    'quotas:set 1 customers=5000 sms_per_day=2000',
    'quotas:set 1 customers=default',
  ).action((store: number, changes: QuotaChanges) => {
    runCommand(async (_, app) => {
      const quotas = app.get(Quotas);
      await quotas.change(by, store, changes);
      return toQuotasJson(store, await quotas.list(store));
    });
  });
}

/** Adds the next argument to those before it. */
function collectChanges(text: string, before: QuotaChanges = {}): QuotaChanges {
  const parsed = parseQuotaChanges([text]);
  if ('changes' in parsed) return { ...before, ...parsed.changes };
  throw new InvalidArgumentError('must be a quota with a number or default, like customers=5000');
}

function toQuotasJson(accountId: number, quotas: Quota[]) {
  return {
    account_id: accountId,
    quotas: Object.fromEntries(
      quotas.map(({ name, used, max, isOwn }) => [name, { used, max, is_own: isOwn }]),
    ),
  };
}
