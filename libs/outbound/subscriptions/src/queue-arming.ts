/**
 * Renders SQL that makes dispatchers check queues. A queue without an owner becomes due at once; the owner of any other
 * sees by `enqueued_count` that it must read the queue again before it releases it.
 * @param ids an SQL query of subscription ids in ascending order; in any other order two transactions could deadlock
 * @param claim SQL for the owner that a queue without one gets instead, and until when; a null owner means none
 */
export function armQueues(
  ids: string,
  claim: { owner: string; until: string } = { owner: 'null::uuid', until: 'now()' },
): string {
  const { owner, until } = claim;
  return `insert into webhook_queues as q (subscription_id, dispatcher_id, due_at)
    select id, ${owner}, case when ${owner} is null then now() else ${until} end from (${ids}) as armed (id)
    on conflict (subscription_id) do update set enqueued_count = q.enqueued_count + 1,
      dispatcher_id = coalesce(q.dispatcher_id, excluded.dispatcher_id),
      due_at = case when q.dispatcher_id is not null then q.due_at
                    when excluded.dispatcher_id is not null then excluded.due_at
                    else least(q.due_at, excluded.due_at) end`;
}
