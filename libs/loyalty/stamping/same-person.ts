/**
 * SQL about customers who are one person because they are merged, one into another. How many there are,
 * and so how long a chain is, is limited (`person-size.ts`). All go by indexes of `customers`.
 */

/** Renders the id of the customer who goes on for another one: itself unless it is merged. @param id an SQL expression */
export function renderSurvivorId(id: string): string {
  return `(${renderChain(id)}
    select survivors.id from survivors where survivors.merged_into is null)`;
}

/** Renders a query of the ids of all customers who are the same person as one, itself included. */
export function renderSamePerson(id: string): string {
  return `${renderChain(id)}, people as (
      select survivors.id from survivors where survivors.merged_into is null
      union all
      select merged.id from people join customers merged on merged.merged_into = people.id
    )
    select people.id from people`;
}

/** Renders the beginning of a query: a customer, and those who went on for them one after the other. */
function renderChain(id: string): string {
  return `with recursive survivors as (
      select own.id, own.merged_into from customers own where own.id = ${id}
      union all
      select next.id, next.merged_into from survivors join customers next on next.id = survivors.merged_into
    )`;
}
