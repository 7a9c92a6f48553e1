/** SQL that stores deliveries taken out of `webhook_pending` as finished. @param from an SQL relation of them */
export const insertFinished = (
  from: string,
  { status, attempts, deliveredAt }: Record<'status' | 'attempts' | 'deliveredAt', string>,
): string => `insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, status, attempts_count, created_at, delivered_at)
      select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
        ${status}, ${attempts}, created_at, ${deliveredAt} from ${from}`;
