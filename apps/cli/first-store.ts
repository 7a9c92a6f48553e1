import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getEmailKey } from '#platform/kernel/email-address.js';
import { query } from '#platform/database/connection.js';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { findCountryOfTimeZone, parseCountry } from '#loyalty/accounts/country.js';
import { CreateAccount } from '#loyalty/accounts/account.commands.js';
import { CreateUser, RemoveUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { generatePassword } from '#identity/passwords.service.js';
import { AddMember } from '#identity/member.commands.js';
import { getOperator, LOCAL_OWNER } from './operator.js';
import { withServices } from './command-services.js';

/** The country of the guides' examples. */
const DEFAULT_COUNTRY = 'DE';

/** The first user, store and token, with their secrets. */
export type FirstStore = { api_token: string; account_id: number; email: string; password: string };

/**
 * Creates the first user, store and token. Each step checks whether it has been done, so that the next start completes
 * an interrupted one.
 */
export function createFirstStore(): Promise<FirstStore> {
  return withServices(async (app) => {
    const pool = app.get(Pool);
    const bus = app.get(CommandBus);
    const by = getOperator();

    // An interrupted setup cannot be continued: its password is lost.
    const interrupted = await query(pool, {
      text: 'select 1 from users where email_key = $1 and removed_at is null',
      values: [getEmailKey(LOCAL_OWNER)],
    });
    if (interrupted.length > 0) await bus.execute(new RemoveUser(by, LOCAL_OWNER));
    const password = generatePassword();
    await bus.execute(new CreateUser(by, LOCAL_OWNER, 'Owner', password, false, true));
    const [store] = await query<{ id: number }>(pool, 'select id from accounts limit 1');
    const accountId =
      store?.id ??
      (
        await bus.execute(
          new CreateAccount(by, {
            name: UNNAMED_STORE,
            storeName: null,
            personal: true,
            timeZone: 'UTC',
            locale: 'en',
            country: guessCountry(process.env),
          }),
        )
      ).id;
    await bus.execute(new AddMember(by, accountId, LOCAL_OWNER, 'owner', true));
    const { token } = await bus.execute(new CreateToken(by, LOCAL_OWNER, 'first token'));
    return { api_token: token, account_id: accountId, email: LOCAL_OWNER, password };
  });
}

/** Guesses where the shop is: in the time zone of this computer, else where its language is spoken. */
function guessCountry({ LC_ALL, LANG }: NodeJS.ProcessEnv): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const [, region = ''] = /^[a-z]+_([A-Z]{2})/.exec(LC_ALL || LANG || '') ?? [];
  return findCountryOfTimeZone(timeZone) ?? parseCountry(region) ?? DEFAULT_COUNTRY;
}
