import { Option, type Command } from 'commander';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import { normalizeEmailAddress } from '#platform/kernel/email-address.js';
import { getPresentUser } from '#identity/user.commands.js';
import { AddMember, ChangeRole, RemoveMember } from '#identity/member.commands.js';
import { ROLES, type Role } from '#identity/roles.js';
import { LANGUAGE_CODES } from '#translations/translations.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import {
  parseEmailKey,
  runList,
  parsePositive,
  runCommand,
  warnOfUnconfirmedAddress,
} from './command.js';
import { addExamples } from '../command-line.js';

const STORES = `
  select a.id::int as account_id, a.name,
    (select coalesce(json_agg(json_build_object('user_id', u.id, 'email', u.email, 'role', m.role)
       order by u.id), '[]')
     from memberships m join users u on u.id = m.user_id where m.account_id = a.id) as members
  from accounts a
  where $1::text is null or exists (
    select from memberships m join users u on u.id = m.user_id
    where m.account_id = a.id and u.email_key = $1 and u.removed_at is null)
  order by a.id`;

type StoreOptions = {
  name: string;
  user: string;
  timeZone: string;
  locale: string;
  country?: string;
  personal: boolean;
};

export function addStoreCommands(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('store:list')
      .description('lists stores with their members')
      .option('--user <email>', 'only those of this user', parseEmailKey),
    'store:list --user grace@shop.example',
  ).action(({ user }: { user?: string }) => {
    runList('stores', async (app) => (await app.get(Pool).query(STORES, [user ?? null])).rows);
  });

  addExamples(
    program
      .command('store:create')
      .description('creates a store with a user as its owner')
      .requiredOption('--name <name>', 'of the store')
      .requiredOption('--user <email>', 'its owner', normalizeEmailAddress)
      .option('--time-zone <zone>', 'IANA time zone name', 'UTC')
      .option(
        '--locale <locale>',
        `language of what customers read: ${LANGUAGE_CODES.join(', ')}`,
        'en',
      )
      .option(
        '--country <country>',
        'ISO 3166-1 alpha-2, in which phone numbers are read; that of the locale if omitted',
      )
      .option('--personal', "the user's own store", false),
    "store:create --name 'Corner Café' --user grace@shop.example --time-zone Europe/Berlin --country DE",
  ).action((options: StoreOptions) => {
    const { name, personal, timeZone, locale, country } = options;
    runCommand(async (bus, app) => {
      const owner = await getPresentUser(app.get(DataSource).manager, options.user);
      const attributes = {
        name,
        storeName: null,
        personal,
        timeZone,
        locale,
        ...(country !== undefined && { country }),
      };
      const { id } = await bus.execute(new CreateAccount(by, attributes, owner.id));
      if (owner.email_confirmed_at === null) warnOfUnconfirmedAddress(options.user);
      return { account_id: id };
    });
  });

  addMemberCommands(program, by);
}

function addMemberCommands(program: Command, by: AuditedWriter): void {
  const role = () => new Option('--role <role>', 'docs/roles.md').choices(ROLES);
  addExamples(
    addMemberOptions(program.command('member:add').description('adds a user to a store')).addOption(
      role().default('owner'),
    ),
    'member:add --store 1 --user grace@shop.example --role staff',
  ).action(({ store, user, role }: { store: number; user: string; role: Role }) => {
    runCommand(async (bus) => {
      const { userId, isConfirmed } = await bus.execute(new AddMember(by, store, user, role));
      if (!isConfirmed) warnOfUnconfirmedAddress(user);
      return { account_id: store, user_id: userId, role, email_confirmed: isConfirmed };
    });
  });

  addExamples(
    addMemberOptions(
      program.command('member:role').description('changes what a member may do in the store'),
    ).addOption(role().makeOptionMandatory()),
    'member:role --store 1 --user grace@shop.example --role manager',
  ).action(({ store, user, role }: { store: number; user: string; role: Role }) => {
    runCommand(async (bus) => {
      const { userId } = await bus.execute(new ChangeRole(by, store, user, role));
      return { account_id: store, user_id: userId, role };
    });
  });

  addExamples(
    addMemberOptions(
      program
        .command('member:remove')
        .description('removes a user from a store, and the store from their tokens'),
    ),
    'member:remove --store 1 --user grace@shop.example',
  ).action(({ store, user }: { store: number; user: string }) => {
    runCommand(async (bus) => {
      const { userId } = await bus.execute(new RemoveMember(by, store, user));
      return { account_id: store, user_id: userId };
    });
  });
}

function addMemberOptions(command: Command): Command {
  return command
    .requiredOption('--store <id>', 'as store:list shows it', parsePositive)
    .requiredOption('--user <email>', 'the member', normalizeEmailAddress);
}
