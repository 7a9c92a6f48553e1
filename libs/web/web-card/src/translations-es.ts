import type { CardTranslations } from './translations-en.js';

const s = (count: number) => (count === 1 ? '' : 's');
const stamps = (text: string, count: number) => `${text} sello${s(count)}`;

export const es: CardTranslations = {
  stamps: 'Sellos',
  stampsOf: (have, need) => `${have} de ${need} sellos`,
  stampsBeyond: stamps,
  joined: 'Le damos la bienvenida.',
  joinedWhy:
    'Le enviamos un enlace a su tarjeta. Si ya tenía una aquí, el enlace abre esa, con sus sellos: quédese con ella y no con esta.',
  joinedWithoutLink:
    'No se puede enviar un enlace a su tarjeta a la dirección o al número indicado. Conserve esta página: añada la tarjeta a su wallet, o guarde la página. Si ya tenía una tarjeta aquí, pregunte por ella en la caja.',
  member: 'Titular',
  toReward: 'Próxima recompensa en',
  stampCount: stamps,
  rewards: 'Recompensas',
  ready: 'Lista para canjear',
  toGo: (text, count) => `Falta${count === 1 ? '' : 'n'} ${stamps(text, count)}`,
  qrCode: (code) => `Código QR de la tarjeta ${code}`,
  showCode: 'Muestre este código en caja',
  validUntil: (day) => `Válida hasta el ${day}`,
  expired: (day) => `Esta tarjeta caducó el ${day}.`,
  onYourPhone: 'En su teléfono',
  addToApple: 'Añadir a Apple Wallet',
  addToGoogle: 'Añadir a Google Wallet',
  notifyMe: 'Avisarme de nuevos sellos',
  stopNotifying: 'No avisarme más',
  notificationsBlocked:
    'Las notificaciones de esta página están bloqueadas en los ajustes del navegador.',
  notificationsFailed: 'No se pudieron activar las notificaciones. Inténtelo más tarde.',
  install: 'Poner en la pantalla de inicio',
  installByHand:
    'Para tener la tarjeta a mano: toque «Compartir» y luego «Añadir a pantalla de inicio».',
  offline: (when) => `Sin conexión. La tarjeta a fecha de ${when}.`,
  notFound: 'Esta tarjeta no existe',
  notFoundWhy:
    'Puede que el enlace esté incompleto o que la tarjeta se haya eliminado. Pregunte en la tienda.',
  unavailable: 'La tarjeta no se puede mostrar ahora',
  unavailableWhy: 'Inténtelo de nuevo en un momento. Sus sellos están a salvo.',
  noticeStamped: (text, count) => `${stamps(text, count)} añadido${s(count)}`,
  noticeUnlocked: (reward) => `${reward}: ¡ya se puede canjear!`,
  noticeRedeemed: (reward) => `${reward}: canjeado. ¡Que lo disfrute!`,
};
