/** Both return undefined when there is no such customer card. */

const STAMP = {
  name: 'stamp',
  text: `update customer_cards set stamps_count = stamps_count + $4, updated_at = now()
         where id = $1 and customer_id = $2 and account_id = $3
         returning id, account_id, customer_id, card_id, uuid, code, stamps_count, issued_at, updated_at`,
};
const LEDGER = {
  name: 'ledger',
  text: `insert into stamp_ledger
           (account_id, customer_card_id, stamps, balance, source, note, token_id, request_id, location_id,
            external_ref)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
};
const LOCATION = {
  name: 'location',
  text: 'select 1 from locations where id = $1 and account_id = $2 and deleted_at is null',
};
const CARD = {
  name: 'card',
  text: 'select name, stamps_required, max_stamps_per_request, expires_at from cards where id = $1',
};
const REWARDS = {
  name: 'rewards',
  text: `select id, name, description, stamps_required from rewards
         where card_id = $1 and active order by stamps_required, id`,
};
const UNLOCK = {
  name: 'unlock',
  text: `insert into unlocks (customer_card_id, reward_id) select $1, unnest($2::bigint[])
         on conflict do nothing`,
};

/** The way most services do it: one transaction of small statements. */
export async function inTransaction(pool, request) {
  const client = await pool.connect();
  let open = false;
  try {
    await client.query('begin');
    open = true;
    const stamped = await client.query({
      ...STAMP,
      values: [request.id, request.customer_id, request.account_id, request.stamps],
    });
    const [customerCard] = stamped.rows;
    if (!customerCard) return undefined;
    if (request.location_id !== null) {
      const values = [request.location_id, customerCard.account_id];
      const { rows } = await client.query({ ...LOCATION, values });
      if (rows.length === 0) return { refused: 'The location does not belong to this store' };
    }
    await client.query({
      ...LEDGER,
      values: [
        customerCard.account_id,
        customerCard.id,
        request.stamps,
        customerCard.stamps_count,
        request.source,
        request.note,
        request.token_id,
        request.request_id,
        request.location_id,
        request.external_ref,
      ],
    });
    const values = [customerCard.card_id];
    const [card] = (await client.query({ ...CARD, values })).rows;
    const refused = refusal(card, request);
    if (refused) return { refused };
    const { rows: rewards } = await client.query({ ...REWARDS, values });
    const before = customerCard.stamps_count - request.stamps;
    const crossed = rewards.filter(
      ({ stamps_required: at }) => at > before && at <= customerCard.stamps_count,
    );
    if (crossed.length > 0) {
      const ids = crossed.map((reward) => reward.id);
      await client.query({ ...UNLOCK, values: [customerCard.id, ids] });
    }
    await client.query('commit');
    open = false;
    return { customerCard, card, rewards };
  } finally {
    if (open) await client.query('rollback');
    client.release();
  }
}

function refusal({ expires_at: expiresAt, max_stamps_per_request: maxStamps }, { stamps }) {
  if (expiresAt !== null && expiresAt <= new Date()) return 'This card has expired';
  if (maxStamps !== null && stamps > maxStamps)
    return `At most ${maxStamps} stamps may be added at once`;
  return undefined;
}

const ONE = {
  name: 'one',
  text: `
with stamped as (
  update customer_cards r set stamps_count = r.stamps_count + $4::int, updated_at = now()
  from cards c
  where r.id = $1 and r.customer_id = $2 and r.account_id = $3 and c.id = r.card_id
    and (c.expires_at is null or c.expires_at > now())
    and (c.max_stamps_per_request is null or c.max_stamps_per_request >= $4::int)
    and ($9::bigint is null or exists (
      select from locations l where l.id = $9 and l.account_id = r.account_id and l.deleted_at is null))
  returning r.id, r.account_id, r.customer_id, r.card_id, r.uuid, r.code, r.stamps_count, r.issued_at,
            r.updated_at, c.name, c.stamps_required
), ledger as (
  insert into stamp_ledger
    (account_id, customer_card_id, stamps, balance, source, note, token_id, request_id, location_id, external_ref)
  select account_id, id, $4::int, stamps_count, $5, $6, $7::bigint, $8, $9::bigint, $10 from stamped
), unlocked as (
  insert into unlocks (customer_card_id, reward_id)
  select s.id, w.id from stamped s join rewards w on w.card_id = s.card_id and w.active
  where w.stamps_required > s.stamps_count - $4::int and w.stamps_required <= s.stamps_count
  on conflict do nothing
)
select s.*, (
  select coalesce(json_agg(json_build_object('id', w.id, 'name', w.name, 'description', w.description,
                    'stamps_required', w.stamps_required) order by w.stamps_required, w.id), '[]')
  from rewards w where w.card_id = s.card_id and w.active
) as rewards
from stamped s`,
};
const WHY = {
  name: 'why',
  text: `select c.expires_at, c.max_stamps_per_request from customer_cards r
         join cards c on c.id = r.card_id
         where r.id = $1 and r.customer_id = $2 and r.account_id = $3`,
};

/** The fastest way on the same tables: everything in one round trip. */
export async function inOneStatement(pool, request) {
  const path = [request.id, request.customer_id, request.account_id];
  const { rows } = await pool.query({
    ...ONE,
    values: [
      ...path,
      request.stamps,
      request.source,
      request.note,
      request.token_id,
      request.request_id,
      request.location_id,
      request.external_ref,
    ],
  });
  const [row] = rows;
  if (row) return { customerCard: row, card: row, rewards: row.rewards };
  const [customerCard] = (await pool.query({ ...WHY, values: path })).rows;
  return customerCard && { refused: refusal(customerCard, request) ?? 'The location is not there' };
}
