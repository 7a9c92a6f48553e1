/** SQL of the name of the customer of a message `m`; null once they are no longer one. */
export const CUSTOMER_NAME = `(select concat_ws(' ', n.first_name, n.last_name) from customer_names n
  join customers e on e.id = n.id where n.id = m.customer_id and e.erased_at is null)`;
