import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { getNameForCustomers, type Account } from '#loyalty/accounts/account.js';
import { findCountryOfTimeZone } from '#loyalty/accounts/country.js';
import { listSmsCountries } from '#loyalty/accounts/sms-countries.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Poster } from '#loyalty/posters/poster.js';
import { findActiveOffers } from '#outbound/passes/pass-content.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import { toMilestones } from '#loyalty/stamping/templates.service.js';
import type { SignupPoster } from './signup-poster.js';

type FoundRow = {
  poster: Poster;
  card: Card;
  rewards: Reward[];
  account: Account;
  store_name: string;
};

@Injectable()
export class SignupPosters {
  constructor(private readonly pool: Pool) {}

  /** Finds a poster, even a deleted one: its page says so in the language of the store. */
  async find(slug: string): Promise<SignupPoster | undefined> {
    const [row] = await query<FoundRow>(this.pool, {
      name: 'signup_poster',
      text: `select p.state as poster, c.state as card, a.state as account, a.display_name as store_name,
               coalesce((select jsonb_agg(w.state) from rewards w where w.card_id = c.id), '[]') as rewards
             from posters p
             join cards c on c.id = p.card_id
             join accounts a on a.id = p.account_id
             where p.slug = $1
             limit 1`,
      values: [slug],
    });
    if (!row) return undefined;
    const { poster, card, rewards, account, store_name: name } = row;
    const { id, timeZone, locale, addressForm, country, consentTexts, logo } = account;
    const { logoContainsName } = account;
    return {
      poster,
      card,
      offers: findActiveOffers(toMilestones(rewards)),
      store: {
        id,
        name: getNameForCustomers(name, card),
        timeZone,
        locale,
        addressForm,
        country: country ?? findCountryOfTimeZone(timeZone),
        consentTexts,
        logo,
        logoContainsName,
        smsCountries: listSmsCountries(account),
      },
    };
  }
}
