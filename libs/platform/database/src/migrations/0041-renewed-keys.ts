import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A customer whose history holds values of somebody else gets another key before that person is erased, and the former
 * one is destroyed (docs/adr/0048).
 */
export class RenewedKeys implements MigrationInterface {
  readonly name = 'RenewedKeys0000000000041';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table personal_keys
        -- still opens what was sealed before; set only while the key is being renewed
        add former bytea,
        -- what does not open any more was sealed with a key that was destroyed
        add renewed boolean not null default false;

      create function es.destroy_former_keys(p_subjects bigint[]) returns void language sql as $$
        update personal_keys set former = null, renewed = true where subject_id = any (p_subjects)
      $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop function es.destroy_former_keys(bigint[]);
      alter table personal_keys drop former, drop renewed;
    `);
  }
}
