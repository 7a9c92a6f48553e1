import { setTimeout } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { Actor } from '#platform/kernel/aggregate.js';
import { getNow } from '#platform/kernel/clock.js';
import { getEmailKey } from '#platform/kernel/email-address.js';
import { Config } from '#configuration/config.js';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import { CampaignsModule } from '#outbound/campaigns/campaigns.module.js';
import { CardsModule } from '#loyalty/cards/cards.module.js';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { generatePassword } from '#identity/passwords.service.js';
import { CreateToken } from '#identity/token.commands.js';
import { SetPassword } from '#identity/user.commands.js';
import { Users } from '#identity/users.service.js';
import { LocationsModule } from '#loyalty/locations/locations.module.js';
import { PostersModule } from '#loyalty/posters/posters.module.js';
import { RewardsModule } from '#loyalty/rewards/rewards.module.js';
import { StampingModule } from '#loyalty/stamping/stamping.module.js';
import { ShopBuilder } from './demo/builder.js';
import { installPast } from './demo/past.js';
import { STAFF, STORE, type StaffKey } from './demo/shop.js';
import { playYear } from './demo/year.js';
import { getOperator, LOCAL_OWNER } from './operator.js';
import { parseProgram } from './programs.js';
import { runProgram } from './run-program.js';
import { withServices } from './command-services.js';

/**
 * Fills a new store with a year of a café: `inkpad demo:shop`, while `npm start` runs. For screenshots, trials and
 * measurements. Each run adds another store. Its people stay the same, and get new passwords.
 */

const MODULES = [
  CampaignsModule,
  CardsModule,
  LocationsModule,
  PostersModule,
  RewardsModule,
  StampingModule,
];
/** A dispatcher that has done nothing for so long is not running. */
const COUNTED_WITHIN_MS = 5_000;
const POLL_MS = 250;

parseProgram('demo:shop');
runProgram(async () => {
  await withServices(buildShop, MODULES);
});

async function buildShop(app: INestApplicationContext): Promise<void> {
  const startedAt = performance.now();
  const bus = app.get(CommandBus);
  const by = getOperator();
  const year = playYear(getNow());
  const runAt = installPast();
  const password = generatePassword();
  const actors = new Map<StaffKey, Actor>();
  const findUser = async (email: string) => {
    const filter = { accountId: null, email: getEmailKey(email), hasRemoved: false };
    const [user] = await app.get(Users).list(filter, null);
    return user;
  };
  for (const { key, email, name } of STAFF) {
    const user = await findUser(email);
    const { userId } = user
      ? await bus.execute(new SetPassword(by, email, password))
      : await bus.execute(new CreateUser(by, email, name, password, false, true));
    actors.set(key, { type: 'user', id: userId });
  }
  const attributes = { ...STORE, personal: false };
  const { id } = await runAt(year.startsAt, () => bus.execute(new CreateAccount(by, attributes)));
  for (const { email, role } of STAFF) await bus.execute(new AddMember(by, id, email, role));
  if (await findUser(LOCAL_OWNER)) await bus.execute(new AddMember(by, id, LOCAL_OWNER, 'owner'));
  const [owner] = STAFF;
  if (!owner) throw new Error('the shop has no owner');
  const { tokenId, token } = await bus.execute(new CreateToken(by, owner.email, 'Kasse'));
  actors.set('till', { type: 'token', id: tokenId });

  const builder = new ShopBuilder(app, id, actors, runAt);
  await builder.furnish(year.startsAt + 60_000);
  await builder.play(year, createProgress(year.steps.length));
  await builder.announce();
  const isCounted = await waitForStatistics(
    app.get(Pool),
    id,
    new Date(year.steps.at(-1)?.at ?? 0),
  );
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const { publicUrl } = app.get(Config);
  const staff = STAFF.filter(({ role }) => role === 'staff');
  console.log(
    [
      `${STORE.name} (store ${id}) has a year of data: ${year.steps.length} entries in ${seconds} s.`,
      ...(isCounted ? [] : ['Its numbers will be there once a dispatcher runs: npm start.']),
      '',
      `Sign in at ${publicUrl}/app with the password ${password}`,
      ...STAFF.filter(({ role }) => role !== 'staff').map(
        ({ role, email, name }) => `  as ${role.padEnd(8)} ${email} (${name})`,
      ),
      ...staff.map(({ email, name }) => `  as staff    ${email} (${name})`),
      '',
      `The page of the store: ${publicUrl}/app/stores/${id}`,
      `An API token of its owner: ${token}`,
    ].join('\n'),
  );
}

/** Prints each tenth of the way. */
function createProgress(total: number): (part: number) => void {
  let printed = 0;
  return (part) => {
    const tenths = Math.floor(part * 10);
    if (tenths === printed) return;
    printed = tenths;
    console.error(`${tenths * 10} % of ${total} entries`);
  };
}

/** Waits until a dispatcher has counted everything up to the last entry of the store, unless none is at work. */
async function waitForStatistics(pool: Pool, accountId: number, lastAt: Date): Promise<boolean> {
  let lastProgress = '';
  for (let idleMs = 0; idleMs < COUNTED_WITHIN_MS; idleMs += POLL_MS) {
    const { rows } = await pool.query<{ progress: string; is_done: boolean }>(
      `select concat(p.seq, ' ', h.seq) as progress, coalesce(p.seq >= h.last, false) as is_done
       from (select max(seq) as seq from statistics_progress) p,
         (select max(seq) as seq, max(seq) filter (where account_id = $1 and occurred_at >= $2) as last
          from history) h`,
      [accountId, lastAt],
    );
    const [{ progress, is_done: isDone } = { progress: '', is_done: false }] = rows;
    if (isDone) return true;
    if (progress !== lastProgress) idleMs = 0;
    lastProgress = progress;
    await setTimeout(POLL_MS);
  }
  return false;
}
