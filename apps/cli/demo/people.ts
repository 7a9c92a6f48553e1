import type { Dice } from './dice.js';

/** @property latin the name as an e-mail address can have it */
type Name = { name: string; latin: string };

/** @property share how many of a hundred customers have a name of this kind */
type NameKind = { share: number; first: Name[]; last: Name[] };

export type Person = {
  first_name: string;
  last_name: string | null;
  email: string | null;
  phone: string | null;
  birthday: string | null;
  marketing_consent: boolean;
};

const KINDS: NameKind[] = [
  kind(
    54,
    'Anna Lena Mia Paula Johanna Charlotte Greta Frieda Marie Sophie Jan Lukas Finn Jonas Felix Paul Emil Moritz Karl Henning Uwe Petra Sabine Birgit Jürgen:juergen Björn:bjoern',
    'Schmidt Petersen Hansen Möller:moeller Lüders:lueders Krüger:krueger Vogt Behrens Wulf Thomsen Brandt Sievers Clausen Harms Reimers Brodersen Ahrens Groß:gross Jansen Carstens',
  ),
  kind(
    9,
    'Aylin Elif Zeynep Emre Can Deniz Ömer:oemer Gülşah:guelsah',
    'Öztürk:oeztuerk Yıldız:yildiz Kaya Demir Şahin:sahin Çelik:celik',
  ),
  kind(
    7,
    'Agnieszka Łukasz:lukasz Małgorzata:malgorzata Paweł:pawel Zofia',
    'Wiśniewska:wisniewska Kowalski Dąbrowska:dabrowska Zieliński:zielinski',
  ),
  kind(5, 'Camille Chloé:chloe Étienne:etienne Noël:noel', 'Lefèvre:lefevre Dubois Garçon:garcon'),
  kind(
    4,
    'Lucía:lucia Íñigo:inigo Ximena Nuño:nuno',
    'Núñez:nunez García:garcia de~la~Peña:delapena',
  ),
  kind(
    5,
    'نور:nour ليلى:layla عمر:omar يوسف:yousef',
    'الهاشمي:alhashimi حداد:haddad بن~سعيد:bensaid',
  ),
  kind(2, 'נועה:noa יונתן:yonatan תמר:tamar', 'כהן:cohen לוי:levi'),
  kind(
    4,
    'Олена:olena Дмитро:dmytro Анастасия:anastasia Сергей:sergey',
    'Шевченко:shevchenko Иванова:ivanova Бондаренко:bondarenko',
  ),
  kind(
    3,
    'Ελένη:eleni Γιώργος:giorgos Σοφία:sofia',
    'Παπαδοπούλου:papadopoulou Αγγελόπουλος:angelopoulos',
  ),
  kind(3, '美咲:misaki 翔太:shota 伟:wei 秀英:xiuying', '佐藤:sato 田中:tanaka 王:wang 李:li'),
  kind(2, 'अनन्या:ananya अर्जुन:arjun प्रिया:priya', 'शर्मा:sharma सिंह:singh'),
  kind(1, '민준:minjun 서연:seoyeon', '김:kim 박:park'),
  kind(
    1,
    'Wolfeschlegelsteinhausenbergerdorff-Maximiliane:wolfe Luna~🌙:luna',
    'Freifrau~von~und~zu~Hohenlohe-Waldenburg-Schillingsfürst:hohenlohe Østergård-Nguyễn:ostergard',
  ),
];

function kind(share: number, first: string, last: string): NameKind {
  return { share, first: toNames(first), last: toNames(last) };
}

/** Reads names separated by spaces. A tilde is a space within a name. */
function toNames(list: string): Name[] {
  return list.split(' ').map((entry) => {
    const [name = '', latin = name.toLowerCase()] = entry.split(':');
    return { name: name.replaceAll('~', ' '), latin };
  });
}

/** Numbers that are given to nobody: those of films and plays in Germany. */
const PHONES = ['+49171392', '+491760406'];
const PHONES_OF_EACH = 100;

/** Creates people of whom no two share an address or a number. @param today YYYY-MM-DD */
export function createPeople(count: number, dice: Dice, today: string): Person[] {
  const phones = PHONES.flatMap((start, at) =>
    Array.from(
      { length: PHONES_OF_EACH },
      (_, i) => start + (at === 0 ? '00' : '90') + String(i).padStart(2, '0'),
    ),
  );
  const year = Number(today.slice(0, 4));
  return Array.from({ length: count }, (_, i): Person => {
    const { first, last } = dice.pick(KINDS, ({ share }) => share);
    const [firstName, lastName] = [dice.pick(first), dice.pick(last)];
    const phone = dice.roll(0.35) ? (phones.shift() ?? null) : null;
    const email = phone !== null && dice.roll(0.3) ? null : findAddress(firstName, lastName, i);
    return {
      first_name: firstName.name,
      last_name: dice.roll(0.82) ? lastName.name : null,
      email,
      phone,
      birthday: dice.roll(0.55) ? createBirthday(dice, year) : null,
      marketing_consent: dice.roll(0.45),
    };
  });
}

function findAddress(first: Name, last: Name, i: number): string {
  return `${first.latin}.${last.latin}.${i + 1}@example.com`.replaceAll(/[^a-z0-9.@-]/g, '');
}

function createBirthday(dice: Dice, year: number): string {
  const age = dice.between(17, 78);
  const month = String(dice.between(1, 12)).padStart(2, '0');
  return `${year - age}-${month}-${String(dice.between(1, 28)).padStart(2, '0')}`;
}
