import type { Command } from 'commander';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { normalizeEmailAddress } from '#platform/kernel/email-address.js';
import {
  CreateUser,
  RemoveUser,
  getUserId,
  type RemovalSummary,
} from '#identity/identity.commands.js';
import { generatePassword } from '#identity/passwords.service.js';
import { SecondFactors } from '#identity/second-factors.service.js';
import { getPresentUser, SetPassword, UnlinkCompany, UpdateUser } from '#identity/user.commands.js';
import { Users, type ListedUser } from '#identity/users.service.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import {
  runList,
  parsePositive,
  runCommand,
  runCommandAfterInput,
  warnOfTokenEnd,
} from './command.js';
import { readPassword, type PasswordOptions } from './password-input.js';
import { addExamples } from '../command-line.js';

/** Subscriptions that go on when the last owner of their store is removed. */
const ENABLED_SUBSCRIPTIONS = `
  select account_id::int, count(*)::int as count from webhook_subscriptions
  where enabled and account_id = any($1) group by account_id`;
type SubscriptionCount = { account_id: number; count: number };

const CONFIRMED =
  'you vouch that the user reads the e-mails to the address: their first sign-in with a company, or by a link, then ends no API token';

export function addUserCommands(program: Command, by: AuditedWriter): void {
  addList(program);
  addCreate(program, by);
  addChanges(program, by);
  addUnlocking(program, by);
  addRemovals(program, by);
}

function addList(program: Command): void {
  addExamples(
    program
      .command('user:list')
      .description('lists users with their stores and the number of their active tokens')
      .option('--store <id>', 'only members of this store', parsePositive)
      .option('--removed', 'includes removed users', false),
    'user:list --store 1',
  ).action(({ store, removed }: { store?: number; removed: boolean }) => {
    const filter = { accountId: store ?? null, email: null, hasRemoved: removed };
    runList('users', async (app) => (await app.get(Users).list(filter, null)).map(toListJson));
  });
}

/** Renders a user as the list shows them. */
function toListJson({ id, emailConfirmedAt, createdAt, removedAt, ...user }: ListedUser): object {
  const { email, name, stores, tokens } = user;
  return {
    user_id: id,
    email,
    email_confirmed_at: emailConfirmedAt,
    name,
    created_at: createdAt,
    removed_at: removedAt,
    stores,
    tokens,
  };
}

function addCreate(program: Command, by: AuditedWriter): void {
  const command = program
    .command('user:create')
    .description('creates a user; asks for the password twice, or generates one without a terminal')
    .requiredOption(
      '--email <email>',
      'the address that the user signs in with',
      normalizeEmailAddress,
    )
    .requiredOption('--name <name>', 'the name that others see')
    .option('--confirmed', CONFIRMED, false);
  addExamples(
    addPasswordOptions(command),
    "user:create --email grace@shop.example --name 'Grace Hopper'",
    "user:create --email grace@shop.example --name 'Grace Hopper' --generate --confirmed",
  ).action((options: PasswordOptions & { email: string; name: string; confirmed: boolean }) => {
    runCommandAfterInput(
      () => readPassword(options),
      async (bus, typedPassword) => {
        const password = typedPassword ?? generatePassword();
        const { email, name, confirmed } = options;
        const isGenerated = typedPassword === undefined;
        const { userId } = await bus.execute(
          new CreateUser(by, email, name, password, isGenerated, confirmed),
        );
        return {
          user_id: userId,
          email,
          ...(typedPassword === undefined && { password }),
        };
      },
    );
  });
}

function addChanges(program: Command, by: AuditedWriter): void {
  const command = program
    .command('user:set-password')
    .description('changes the password, and ends all sessions and reset links')
    .requiredOption('--email <email>', 'address of the user', normalizeEmailAddress);
  addExamples(
    addPasswordOptions(command),
    'user:set-password --email grace@shop.example',
    'user:set-password --email grace@shop.example --password-stdin < password.txt',
  ).action((options: PasswordOptions & { email: string }) => {
    const { email } = options;
    runCommandAfterInput(
      () => readPassword(options),
      async (bus, typedPassword) => {
        const password = typedPassword ?? generatePassword();
        const isGenerated = typedPassword === undefined;
        const { userId } = await bus.execute(new SetPassword(by, email, password, 0, isGenerated));
        return { user_id: userId, email, ...(typedPassword === undefined && { password }) };
      },
    );
  });

  addExamples(
    program
      .command('user:set-email')
      .description('changes the address, and ends all sessions and reset links')
      .requiredOption('--email <email>', 'the address until now', normalizeEmailAddress)
      .requiredOption('--to <email>', 'the new one', normalizeEmailAddress)
      .option('--confirmed', CONFIRMED, false),
    'user:set-email --email grace@old.example --to grace@shop.example',
    'user:set-email --email grace@shop.example --to grace@shop.example --confirmed',
  ).action(({ email, to, confirmed }: { email: string; to: string; confirmed: boolean }) => {
    runCommand(async (bus, app) => {
      const change = new UpdateUser(by, email, { email: to }, confirmed);
      const { userId } = await bus.execute(change);
      const { email_confirmed_at } = await getPresentUser(app.get(DataSource).manager, userId);
      if (email_confirmed_at === null) warnOfTokenEnd(to);
      return { user_id: userId, email: to };
    });
  });
}

/** Adds a command for people who cannot sign in any more. */
function addUnlocking(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('user:unlink-company')
      .description(
        'unlinks a user from the company account that signed in first, so that another person with the address can sign in; ends all sessions',
      )
      .requiredOption('--email <email>', 'address of the user', normalizeEmailAddress),
    'user:unlink-company --email grace@shop.example',
  ).action(({ email }: { email: string }) => {
    runCommand(async (bus) => {
      const { userId, unlinked } = await bus.execute(new UnlinkCompany(by, email));
      return { user_id: userId, email, unlinked };
    });
  });

  addExamples(
    program
      .command('user:remove-codes')
      .description(
        'removes two-factor codes of a user who has lost phone and recovery codes: the password alone then signs in',
      )
      .requiredOption('--email <email>', 'address of the user', normalizeEmailAddress),
    'user:remove-codes --email grace@shop.example',
  ).action(({ email }: { email: string }) => {
    runCommand(async (_, app) => {
      const userId = await getUserId(app.get(DataSource).manager, email);
      await app.get(SecondFactors).remove(by, userId);
      return { user_id: userId, email };
    });
  });
}

function addRemovals(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('user:remove')
      .description(
        'removes a user from all stores, ends their sessions and tokens, and reports what remains; the history keeps their name',
      )
      .requiredOption('--email <email>', 'address of the user', normalizeEmailAddress),
    'user:remove --email grace@shop.example',
  ).action(({ email }: { email: string }) => {
    runCommand(async (bus, app) => {
      const { userId, summary } = await bus.execute(new RemoveUser(by, email));
      const ids = summary.stores.map(({ account_id }) => account_id);
      const { rows } = await app.get(Pool).query<SubscriptionCount>(ENABLED_SUBSCRIPTIONS, [ids]);
      const stores = summary.stores.map((store) => ({
        ...store,
        webhook_subscriptions:
          rows.find(({ account_id }) => account_id === store.account_id)?.count ?? 0,
      }));
      for (const line of stores.flatMap(describeSteps)) console.error(line);
      return {
        user_id: userId,
        tokens_ended: summary.tokensEnded,
        sessions_ended: summary.sessionsEnded,
        stores,
      };
    });
  });
}

/** Describes what an operator still has to do about a store. */
function describeSteps({
  account_id: id,
  owners,
  webhook_subscriptions: subscriptions,
}: RemovalSummary['stores'][number] & { webhook_subscriptions: number }): string[] {
  if (owners > 0) return [];
  const webhooks =
    subscriptions === 0
      ? ''
      : ` Its ${subscriptions} webhook subscriptions go on, without an owner to warn.`;
  return [
    `Store ${id} has no owner any more: inkpad member:add --store ${id} --user … gives it one.${webhooks}`,
  ];
}

function addPasswordOptions(command: Command): Command {
  return command
    .option(
      '--password <password>',
      'visible to other users of this machine: leave it out to be asked',
    )
    .option('--password-stdin', 'reads the first line of standard input')
    .option('--generate', 'generates one and prints it');
}
