/**
 * SQL that makes dispatchers look at lanes. A lane without an owner becomes due at once; the owner of any other sees by
 * `planned` that it must look again before it releases the lane.
 * @param ids an SQL query of subscription ids in ascending order; in any other order two transactions could deadlock
 */
export function armLanes(ids: string): string {
  return `insert into webhook_lanes as l (subscription_id, due_at)
    select id, now() from (${ids}) as armed (id)
    on conflict (subscription_id) do update set planned = l.planned + 1,
      due_at = case when l.owner is null then least(l.due_at, now()) else l.due_at end`;
}
