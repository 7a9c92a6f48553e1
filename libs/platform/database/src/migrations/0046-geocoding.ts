import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Addresses to be geocoded, what geocoders have answered, and the places and postcodes of the offline one. */
export class Geocoding implements MigrationInterface {
  readonly name = 'Geocoding0000000000046';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table geocoding_queue (
        location_id bigint primary key,
        account_id bigint not null,
        -- raised by each wish, so that one that comes during an attempt is not lost with it
        asked bigint not null default 1,
        -- an operator's wish: also when the address has been found before
        again boolean not null default false,
        attempts int not null default 0,
        due_at timestamptz not null default now(),
        last_error text
      );
      create index geocoding_queue_turns on geocoding_queue (account_id, due_at);

      create table geocoding_cache (
        provider text not null,
        -- SHA-256 of the address
        query bytea not null,
        -- all three null: not found
        latitude float8,
        longitude float8,
        precision text,
        asked_at timestamptz not null default now(),
        primary key (provider, query)
      );
      create index geocoding_cache_age on geocoding_cache (asked_at);

      create table geocoding_pace (provider text primary key, next_at timestamptz not null);

      -- Rows of a load count once it is named here, so that a load can be interrupted: 'places', 'postcodes:DE'
      create sequence gazetteer_loads as int;
      create table gazetteer_parts (
        part text primary key,
        load_id int not null,
        version text not null,
        loaded_at timestamptz not null default now()
      );
      create table gazetteer_places (
        load_id int not null,
        -- the name without case, accents and punctuation
        key text not null,
        country text not null,
        state text not null,
        population int not null,
        latitude float4 not null,
        longitude float4 not null
      );
      create index gazetteer_places_key on gazetteer_places (load_id, key);
      create table gazetteer_postcodes (
        load_id int not null,
        postcode text not null,
        country text not null,
        place text not null,
        latitude float4 not null,
        longitude float4 not null
      );
      create index gazetteer_postcodes_key on gazetteer_postcodes (load_id, postcode);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table gazetteer_postcodes, gazetteer_places, gazetteer_parts, geocoding_pace, geocoding_cache,
        geocoding_queue;
      drop sequence gazetteer_loads;
    `);
  }
}
