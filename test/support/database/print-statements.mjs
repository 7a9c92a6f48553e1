import pg from 'pg';

/** With `--import`: this process writes the name of each named statement that it sends, one to a line. */
const { query } = pg.Client.prototype;

pg.Client.prototype.query = function queryAndPrint(statement, ...rest) {
  if (statement?.name) process.stdout.write(`statement ${statement.name}\n`);
  return query.call(this, statement, ...rest);
};
