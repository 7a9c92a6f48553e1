import { Option, type Command } from 'commander';
import { normalizeEmailAddress } from '#platform/kernel/email-address.js';
import { ApiTokens, type ApiTokenRecord } from '#identity/api-tokens.service.js';
import { ROLES, type Role } from '#identity/roles.js';
import { CreateToken, LimitToken, RevokeToken } from '#identity/token.commands.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import {
  parseEmailKey,
  runList,
  parsePositive,
  runCommand,
  parseTimeOption,
  warnOfTokenEnd,
  type TimeOption,
} from './command.js';
import { addExamples } from '../command-line.js';

type NewTokenOptions = {
  user: string;
  name: string;
  expires?: TimeOption;
  role?: Role;
  store?: number[];
  readOnly: boolean;
};

export function addTokenCommands(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('token:list')
      .description('lists active API tokens with owner, restrictions, creation and last use')
      .option('--user <email>', 'only those of this user', parseEmailKey)
      .option('--all', 'includes revoked and expired tokens', false),
    'token:list --user grace@shop.example',
  ).action(({ user, all }: { user?: string; all: boolean }) => {
    const filter = { user: user ?? null, isComplete: all };
    runList('tokens', async (app) => (await app.get(ApiTokens).list(filter, null)).map(toListJson));
  });

  addTokenCreation(program, by);

  addExamples(
    program
      .command('token:limit')
      .description('gives a token its own rate limit instead of RATE_LIMIT_PER_MINUTE')
      .requiredOption('--token-id <id>', 'as token:list shows it', parsePositive)
      .requiredOption('--per-minute <n>', 'requests', parsePositive),
    'token:limit --token-id 5 --per-minute 1200',
  ).action(({ tokenId, perMinute }: { tokenId: number; perMinute: number }) => {
    runCommand(async (bus) => {
      await bus.execute(new LimitToken(by, tokenId, perMinute));
      return { token_id: tokenId, per_minute: perMinute };
    });
  });

  addExamples(
    program
      .command('token:revoke')
      .description('revokes a token; takes effect within a second in every process')
      .requiredOption('--token-id <id>', 'as token:list shows it', parsePositive),
    'token:revoke --token-id 5',
  ).action(({ tokenId }: { tokenId: number }) => {
    runCommand(async (bus) => {
      await bus.execute(new RevokeToken(by, tokenId));
      return { token_id: tokenId, revoked: true };
    });
  });
}

/** Renders a token as the list shows it. */
function toListJson(token: ApiTokenRecord): object {
  return {
    token_id: token.id,
    name: token.name,
    user_id: token.userId,
    email: token.email,
    role: token.role,
    account_ids: token.accountIds,
    read_only: token.isReadOnly,
    per_minute: token.perMinute,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    last_used_at: token.lastUsedAt,
    revoked_at: token.revokedAt,
  };
}

function addTokenCreation(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('token:create')
      .description('creates an API token and prints it; it is never shown again')
      .requiredOption('--user <email>', 'the user that it acts for', normalizeEmailAddress)
      .requiredOption('--name <name>', 'what it is for')
      .option(
        '--expires <time>',
        'when it stops working, ISO 8601, or the last day in UTC; never if omitted',
        parseTimeOption('end'),
      )
      .addOption(
        new Option(
          '--role <role>',
          "where the user's own role has more rights, the token has this one",
        ).choices(ROLES),
      )
      .option(
        '--store <id...>',
        'the only stores that it may access; all of the user if omitted',
        (text: string, ids: number[] = []) => [...ids, parsePositive(text)],
      )
      .option('--read-only', 'it may only read', false),
    'token:create --user grace@shop.example --name till --expires 2027-12-31',
    'token:create --user grace@shop.example --name reports --store 1 2 --role manager --read-only',
  ).action(({ user, name, expires, role, store, readOnly }: NewTokenOptions) => {
    runCommand(async (bus) => {
      const command = new CreateToken(by, user, name, expires?.('UTC') ?? null, {
        role: role ?? null,
        accountIds: store ?? null,
        isReadOnly: readOnly,
      });
      const { tokenId, token, endsWhenConfirmed } = await bus.execute(command);
      if (endsWhenConfirmed) warnOfTokenEnd(user);
      return { token_id: tokenId, api_token: token };
    });
  });
}
