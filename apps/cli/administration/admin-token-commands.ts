import type { Command } from 'commander';
import { CreateAdminToken, RevokeAdminToken } from '#web/admin-api/admin-token.commands.js';
import { AdminTokens } from '#web/admin-api/admin-tokens.service.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { parsePositive, parseTimeOption, runCommand, runList, type TimeOption } from './command.js';
import { addExamples } from '../command-line.js';

type NewAdminTokenOptions = { name: string; expires?: TimeOption; readOnly: boolean };

/** Adds the commands for tokens of the admin API, which no API can create. */
export function addAdminTokenCommands(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('admin-token:list')
      .description('lists tokens of the admin API, with creation and last use')
      .option('--all', 'includes revoked and expired tokens', false),
    'admin-token:list',
  ).action(({ all }: { all: boolean }) => {
    runList('admin_tokens', (app) => app.get(AdminTokens).list(all));
  });

  addExamples(
    program
      .command('admin-token:create')
      .description(
        'creates a token of the admin API and prints it; it is never shown again, and the first one turns the API on',
      )
      .requiredOption('--name <name>', 'the program that it is for')
      .option(
        '--expires <time>',
        'when it stops working, ISO 8601, or the last day in UTC; never if omitted',
        parseTimeOption('end'),
      )
      .option('--read-only', 'it may only read', false),
    'admin-token:create --name terraform --expires 2027-12-31',
  ).action(({ name, expires, readOnly }: NewAdminTokenOptions) => {
    runCommand(async (bus) => {
      const { tokenId, token } = await bus.execute(
        new CreateAdminToken(by, name, expires?.('UTC') ?? null, readOnly),
      );
      return { admin_token_id: tokenId, admin_token: token };
    });
  });

  addExamples(
    program
      .command('admin-token:revoke')
      .description('revokes a token of the admin API; takes effect at once in every process')
      .requiredOption('--token-id <id>', 'as admin-token:list shows it', parsePositive),
    'admin-token:revoke --token-id 5',
  ).action(({ tokenId }: { tokenId: number }) => {
    runCommand(async (bus) => {
      await bus.execute(new RevokeAdminToken(by, tokenId));
      return { admin_token_id: tokenId, revoked: true };
    });
  });
}
